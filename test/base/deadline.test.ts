import { connect, createServer } from 'node:net'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { startTimer, withDeadline } from '../../src/base/deadline.js'

const timeoutError = () => new Error('timed out')
const limit = (more: { timeoutMs?: number; signal?: AbortSignal } = {}) => ({
  timeoutMs: 20_000,
  timeoutError,
  ...more,
})
const never = () => new Promise<never>(() => {})

afterEach(() => {
  vi.useRealTimers()
})

function holdEventLoop(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

describe('withDeadline', () => {
  it('settles as the work does, and leaves no timer and no listener', async () => {
    vi.useFakeTimers()
    const { signal } = new AbortController()
    const removed = vi.spyOn(signal, 'removeEventListener')
    await expect(withDeadline(limit({ signal }), async () => 'value')).resolves.toBe('value')
    await expect(withDeadline(limit({ signal }), Promise.resolve(1))).resolves.toBe(1)
    const failed = withDeadline(limit({ signal }), async () => {
      throw new Error('of the work')
    })
    await expect(failed).rejects.toThrow('of the work')
    expect(vi.getTimerCount()).toBe(0)
    expect(removed).toHaveBeenCalledTimes(3)
  })

  it('passes a late value on, and ignores a late failure', async () => {
    const late = vi.fn()
    let end: { resolve: (value: string) => void; reject: (error: Error) => void } | undefined
    const work = () =>
      new Promise<string>((resolve, reject) => {
        end = { resolve, reject }
      })
    const tooLate = () => withDeadline({ ...limit({ timeoutMs: 1 }), onLateValue: late }, work)
    await expect(tooLate()).rejects.toThrow()
    end?.resolve('late')
    await expect(tooLate()).rejects.toThrow()
    end?.reject(new Error('late'))
    expect(late.mock.calls).toEqual([['late']])
  })

  it('cancels all work that shares a signal, without a warning of Node', async () => {
    const outer = new AbortController()
    const warned = vi.spyOn(process, 'emitWarning')
    const running = Array.from({ length: 20 }, () =>
      withDeadline(limit({ signal: outer.signal }), never),
    )
    expect(warned).not.toHaveBeenCalled()
    outer.abort(new Error('cancelled'))
    const ends = await Promise.allSettled(running)
    expect(ends.map(({ status }) => status)).toEqual(running.map(() => 'rejected'))
  })
})

describe('startTimer', () => {
  it('fires after a reply that arrived while the event loop was busy has been read', async () => {
    const server = createServer((socket) => socket.on('data', () => socket.write('reply')))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const socket = connect(port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    const order: string[] = []
    socket.on('data', (bytes) => order.push(String(bytes)))
    socket.write('request')
    await turn()
    await turn()
    const fired = new Promise<void>((resolve) => {
      startTimer(5, () => {
        order.push('timeout')
        resolve()
      })
    })
    holdEventLoop(20)
    await fired
    expect(order).toEqual(['reply', 'timeout'])
    socket.destroy()
    server.close()
  })

  it('can be stopped between its timer and the reading of the data', async () => {
    const expire = vi.fn()
    const stop = startTimer(1, expire)
    setTimeout(stop, 1)
    holdEventLoop(5)
    await turn()
    await turn()
    await sleep(20)
    expect(expire).not.toHaveBeenCalled()
  })
})
