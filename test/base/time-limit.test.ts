import { expect, it, vi } from 'vitest'
import { withinTimeLimit } from '../../src/base/time-limit.js'

const timedOut = () => new Error('the time is over')
const limit = (more: { timeoutMs?: number; signal?: AbortSignal } = {}) => ({
  timeoutMs: 20_000,
  signal: new AbortController().signal,
  timedOut,
  ...more,
})
const never = () => new Promise<never>(() => {})

it('gives what the work gives, and aborts its signal once it has ended', async () => {
  let seen: AbortSignal | undefined
  const result = await withinTimeLimit(limit(), async (signal) => {
    seen = signal
    return signal.aborted
  })
  expect([result, seen?.aborted]).toEqual([false, true])
})

it('passes on what the work throws', async () => {
  const failed = withinTimeLimit(limit(), async () => {
    throw new Error('of the work')
  })
  await expect(failed).rejects.toThrow('of the work')
})

it('ends work that ignores its signal when the time is over', async () => {
  await expect(withinTimeLimit(limit({ timeoutMs: 5 }), never)).rejects.toThrow('time is over')
})

it('ends the work with the reason of the signal, and leaves no listener on it', async () => {
  const outer = new AbortController()
  const running = withinTimeLimit(limit({ signal: outer.signal }), never)
  outer.abort(new Error('of the signal'))
  await expect(running).rejects.toThrow('of the signal')
  for (let count = 0; count < 20; count += 1) {
    await expect(withinTimeLimit(limit({ signal: outer.signal }), never)).rejects.toThrow('signal')
  }
})

it('does not begin the work when the signal has aborted before', async () => {
  const signal = AbortSignal.abort(new Error('before'))
  let isBegun = false
  const work = async () => {
    isBegun = true
  }
  await expect(withinTimeLimit(limit({ signal }), work)).rejects.toThrow('before')
  expect(isBegun).toBe(false)
})

it('puts one listener on a signal that many share, so that Node does not warn', async () => {
  const outer = new AbortController()
  const listened = vi.spyOn(outer.signal, 'addEventListener')
  const running = Array.from({ length: 20 }, () =>
    withinTimeLimit(limit({ signal: outer.signal }), never),
  )
  expect(listened).toHaveBeenCalledTimes(1)
  outer.abort(new Error('of the signal'))
  const ends = await Promise.allSettled(running)
  expect(ends.map(({ status }) => status)).toEqual(running.map(() => 'rejected'))
})
