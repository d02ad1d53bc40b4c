import { inspect } from 'node:util'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  attemptFor,
  faultText,
  isExpired,
  isReplyError,
  NotConfirmed,
  persist,
  within,
} from '../../../../src/stores/redis/connection/redis-deadline.js'

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
  test('gives what comes in time, and leaves no timer', async () => {
    vi.useFakeTimers()
    await expect(within(Promise.resolve(1), attemptFor(100))).resolves.toBe(1)
    const error = new Error('broken')
    await expect(within(Promise.reject(error), attemptFor(100))).rejects.toBe(error)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('rejects at the deadline, with what is known by then of its having run', async () => {
    vi.useFakeTimers()
    const attempt = attemptFor(100)
    const outcome = within(never(), attempt).catch((error: unknown) => error)
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
  test('tries again while connections break', async () => {
    let breaks = 3
    const tryOnce = vi.fn(async () => {
      if (breaks-- > 0) throw new Error('Connection is closed.')
      return 'done'
    })
    await expect(persist(attemptFor(5000), tryOnce)).resolves.toBe('done')
    expect(tryOnce).toHaveBeenCalledTimes(4)
  })

  test('ends at the deadline', async () => {
    const broken = () => Promise.reject(new Error('Connection is closed.'))
    await expect(persist(attemptFor(50), broken)).rejects.toThrow(NotConfirmed)
  })

  test('takes NotConfirmed for an answer', async () => {
    const error = new NotConfirmed('too few', true)
    const tryOnce = vi.fn(() => Promise.reject(error))
    await expect(persist(attemptFor(5000), tryOnce)).rejects.toBe(error)
    expect(tryOnce).toHaveBeenCalledTimes(1)
  })

  test('takes what Redis says for an answer, without what it was sent', async () => {
    const error = Object.assign(serversAnswer('OOM'), { command: { args: ['secret'] } })
    const tryOnce = vi.fn(() => Promise.reject(error))
    const thrown = await persist(attemptFor(5000), tryOnce).catch((caught: Error) => caught)
    expect(inspect(thrown, { depth: 9 })).toContain('OOM')
    expect(inspect(thrown, { depth: 9 })).not.toContain('secret')
    expect(tryOnce).toHaveBeenCalledTimes(1)
  })
})

test.each([
  ["ERR unknown command 'AUTH', with args beginning with: 'secret' ", "ERR unknown command 'AUTH'"],
  ['OOM command not allowed', 'OOM command not allowed'],
])('of %j is told: %j', (message, text) => {
  expect(faultText(new Error(message))).toBe(text)
})

test('an error is the server’s answer by its name alone', () => {
  expect(isReplyError(serversAnswer('LOADING'))).toBe(true)
  expect(isReplyError(new Error('ReplyError'))).toBe(false)
  expect(isReplyError({ name: 'ReplyError' })).toBe(false)
})
