import { inspect } from 'node:util'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  attemptFor,
  createDeadlines,
  faultText,
  isOver,
  isServersAnswer,
  NotConfirmed,
  persist,
  within,
} from '../../../src/stores/redis/attempt.js'

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
    expect(isOver(attempt)).toBe(false)
    attempt.mayHaveRun = true
    await vi.advanceTimersByTimeAsync(2)
    expect(await outcome).toBeInstanceOf(NotConfirmed)
    expect(await outcome).toMatchObject({ mayHaveRun: true })
    expect(isOver(attempt)).toBe(true)
  })
})

describe('deadlines', () => {
  test('strike each in its time, with one timer for all', async () => {
    vi.useFakeTimers()
    const deadlines = createDeadlines()
    const expired: string[] = []
    const [first, second, third] = ['first', 'second', 'third'].map((name, index) => {
      const attempt = { ...attemptFor(100), deadline: performance.now() + 100 + 10 * index }
      deadlines.add(attempt, () => expired.push(name))
      return attempt
    })
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(101)
    expect(expired).toEqual(['first'])
    for (const attempt of [first, second]) deadlines.remove(attempt as NonNullable<typeof first>)
    await vi.advanceTimersByTimeAsync(15)
    expect(expired).toEqual(['first'])
    await vi.advanceTimersByTimeAsync(10)
    expect(expired).toEqual(['first', 'third'])
    expect(vi.getTimerCount()).toBe(0)
    deadlines.add({ ...attemptFor(100) }, () => expired.push('fourth'))
    deadlines.remove(third as NonNullable<typeof third>)
    await vi.advanceTimersByTimeAsync(101)
    expect(expired).toEqual(['first', 'third', 'fourth'])
  })
})

test('a deadline strikes those only whose reply had its time, however busy the loop is', async () => {
  const deadlines = createDeadlines()
  const expired: string[] = []
  // Between the timer and what it strikes.
  setTimeout(() => setImmediate(() => block(80)), 30)
  const struck = new Promise<readonly string[]>((resolve) => {
    deadlines.add(attemptFor(30), () => {
      expired.push('first')
      setImmediate(() => resolve([...expired]))
    })
  })
  const second = attemptFor(60)
  deadlines.add(second, () => expired.push('second'))
  expect(await struck).toEqual(['first'])
  expect(deadlines.remove(second)).toBe(true)
  expect(deadlines.remove(second)).toBe(false)
})

function block(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

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
  expect(isServersAnswer(serversAnswer('LOADING'))).toBe(true)
  expect(isServersAnswer(new Error('ReplyError'))).toBe(false)
  expect(isServersAnswer({ name: 'ReplyError' })).toBe(false)
})
