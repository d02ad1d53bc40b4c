import { inspect } from 'node:util'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  errorText,
  isExpired,
  isReplyError,
  NotConfirmed,
  retryUntilDeadline,
  startRedisCall,
  untilDeadline,
} from '../../../../src/stores/redis/connection/redis-call.js'

afterEach(() => {
  vi.useRealTimers()
})

const never = (): Promise<never> => new Promise(() => {})

function serversAnswer(message: string): Error {
  const error = new Error(message)
  error.name = 'ReplyError'
  return error
}

describe('within', () => {
  it('gives what comes in time, and leaves no timer', async () => {
    vi.useFakeTimers()
    await expect(untilDeadline(Promise.resolve(1), startRedisCall(100))).resolves.toBe(1)
    const error = new Error('broken')
    await expect(untilDeadline(Promise.reject(error), startRedisCall(100))).rejects.toBe(error)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('has expired once it is rejected, although its timer may fire early', async () => {
    const keepsAlive = setInterval(() => {}, 1000)
    for (let attempt = 0; attempt < 100; attempt += 1) {
      const state = startRedisCall(1.9)
      await expect(untilDeadline(never(), state)).rejects.toBeInstanceOf(NotConfirmed)
      expect(isExpired(state)).toBe(true)
    }
    clearInterval(keepsAlive)
  })

  it('rejects at the deadline, with what is known by then of its having run', async () => {
    vi.useFakeTimers()
    const attempt = startRedisCall(100)
    const outcome = untilDeadline(never(), attempt).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(99)
    expect(isExpired(attempt)).toBe(false)
    attempt.mayHaveRun = true
    await vi.advanceTimersByTimeAsync(2)
    expect(await outcome).toBeInstanceOf(NotConfirmed)
    expect(await outcome).toMatchObject({ mayHaveRun: true })
    expect(isExpired(attempt)).toBe(true)
  })
})

describe('persist', () => {
  it('tries again while connections break', async () => {
    let breaks = 3
    const tryOnce = vi.fn(async () => {
      if (breaks-- > 0) throw new Error('Connection is closed.')
      return 'done'
    })
    await expect(retryUntilDeadline(startRedisCall(5000), tryOnce)).resolves.toBe('done')
    expect(tryOnce).toHaveBeenCalledTimes(4)
  })

  it('ends at the deadline', async () => {
    const broken = () => Promise.reject(new Error('Connection is closed.'))
    await expect(retryUntilDeadline(startRedisCall(50), broken)).rejects.toThrow(NotConfirmed)
  })

  it('takes NotConfirmed for an answer', async () => {
    const error = new NotConfirmed('too few', true)
    const tryOnce = vi.fn(() => Promise.reject(error))
    await expect(retryUntilDeadline(startRedisCall(5000), tryOnce)).rejects.toBe(error)
    expect(tryOnce).toHaveBeenCalledTimes(1)
  })

  it('takes what Redis says for an answer, without what it was sent', async () => {
    const error = Object.assign(serversAnswer('OOM'), { command: { args: ['secret'] } })
    const tryOnce = vi.fn(() => Promise.reject(error))
    const thrown = await retryUntilDeadline(startRedisCall(5000), tryOnce).catch(
      (caught: Error) => caught,
    )
    expect(inspect(thrown, { depth: 9 })).toContain('OOM')
    expect(inspect(thrown, { depth: 9 })).not.toContain('secret')
    expect(tryOnce).toHaveBeenCalledTimes(1)
  })
})

it.each([
  ["ERR unknown command 'AUTH', with args beginning with: 'secret' ", "ERR unknown command 'AUTH'"],
  ['OOM command not allowed', 'OOM command not allowed'],
])('of %j is told: %j', (message, text) => {
  expect(errorText(new Error(message))).toBe(text)
})

it('an error is the server’s answer by its name alone', () => {
  expect(isReplyError(serversAnswer('LOADING'))).toBe(true)
  expect(isReplyError(new Error('ReplyError'))).toBe(false)
  expect(isReplyError({ name: 'ReplyError' })).toBe(false)
})
