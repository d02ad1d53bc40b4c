import { type KeySet, type RemoteKeySetOptions, remoteKeySet } from 'express-service-auth'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { until } from '../../support/until.js'

const DOCUMENT = { keys: [shapeOfKey('a', 2048)] }
const SECOND = 1000
let opened: KeySet | undefined

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  opened?.close()
  vi.useRealTimers()
})

/** A key set whose answers come from a function in place of a server, so that hours take no time. */
function keySetOn(
  answer: () => Response,
  options: Partial<RemoteKeySetOptions> = {},
): { keySet: KeySet; asked: number[] } {
  const asked: number[] = []
  const fetch = async (): Promise<Response> => {
    asked.push(Date.now())
    return answer()
  }
  const keySet = remoteKeySet({ jwksUri: 'https://core.example/jwks.json', fetch, ...options })
  opened = keySet
  return { keySet, asked }
}

const ok = (headers: Record<string, string> = {}): Response => Response.json(DOCUMENT, { headers })

/** What was asked for, in seconds after the first. */
const gaps = (asked: readonly number[]): number[] =>
  asked.map((moment) => Math.round((moment - (asked[0] ?? 0)) / SECOND))

it('is refreshed every refreshSeconds, although nobody asks', async () => {
  const { keySet, asked } = keySetOn(() => ok(), { refreshSeconds: 60 })
  await keySet.ready()
  await vi.advanceTimersByTimeAsync(300 * SECOND)
  expect(gaps(asked)).toEqual([0, 60, 120, 180, 240, 300])
  expect(keySet.health().state).toBe('fresh')
})

it.each([
  ['max-age=100', [0, 50, 100]],
  ['max-age=1', [0, 5, 10, 15, 20, 25]],
  ['no-store', [0, 5, 10, 15, 20, 25]],
])('is refreshed well before it expires by %s', async (cacheControl, moments) => {
  const { keySet, asked } = keySetOn(() => ok({ 'cache-control': cacheControl }))
  await keySet.ready()
  for (let elapsed = 0; elapsed < (moments.at(-1) ?? 0); elapsed++) {
    await vi.advanceTimersByTimeAsync(SECOND)
    expect(keySet.health().keys).toEqual(['a'])
  }
  expect(gaps(asked)).toEqual(moments)
})

it('is fetched no sooner than every 5 s, whatever the options and the server say', async () => {
  const hasty = { refreshSeconds: 0.001, maxStaleSeconds: 0.001 }
  const { keySet, asked } = keySetOn(() => ok({ 'cache-control': 'max-age=0' }), hasty)
  await keySet.ready()
  await vi.advanceTimersByTimeAsync(60 * SECOND)
  expect(asked.length).toBeLessThanOrEqual(13)
  expect(keySet.health().keys).toEqual(['a'])
})

it('comes back by itself after an outage, also after it has expired', async () => {
  let down = false
  const answer = (): Response => (down ? new Response('', { status: 503 }) : ok())
  const { keySet, asked } = keySetOn(answer, { maxStaleSeconds: 100 })
  await keySet.ready()
  down = true
  await passes(99)
  await until('a fetch has failed', async () => keySet.health().lastError === 'status')
  expect(keySet.health()).toMatchObject({ state: 'stale', keys: ['a'] })
  await passes(2)
  expect(keySet.health()).toMatchObject({ state: 'expired', keys: [], lastError: 'status' })
  // One that succeeded, and two requests for each fetch that failed.
  await until('no fetch is under way', async () => asked.length % 2 === 1)
  const during = asked.length
  await passes(60)
  expect(asked.length).toBeGreaterThan(during)
  down = false
  await passes(31)
  await until(
    'the fetch that is under way has ended',
    async () => keySet.health().state === 'fresh',
  )
  expect(keySet.health().keys).toEqual(['a'])
})

it('comes back by itself after a sleep of the machine that it did not survive', async () => {
  const { keySet } = keySetOn(() => ok(), { maxStaleSeconds: 100 })
  await keySet.ready()
  vi.setSystemTime(Date.now() + 7200 * SECOND)
  expect(keySet.health().state).toBe('expired')
  await vi.advanceTimersByTimeAsync(100 * SECOND)
  expect(keySet.health()).toMatchObject({ state: 'fresh', keys: ['a'] })
})

it('is not fetched any more once it is closed', async () => {
  const { keySet, asked } = keySetOn(() => ok())
  await keySet.ready()
  // Tests of other files in this process may have timers of their own.
  const timers = vi.getTimerCount()
  keySet.close()
  expect(vi.getTimerCount()).toBe(timers - 1)
  await vi.advanceTimersByTimeAsync(7200 * SECOND)
  expect(asked).toHaveLength(1)
})

it('does not spin on a clock that stands still just before the refresh', async () => {
  let now = Date.now()
  const clock = vi.fn(() => now)
  const { keySet, asked } = keySetOn(() => ok(), { clock })
  await keySet.ready()
  now += 299_999
  await vi.advanceTimersByTimeAsync(300 * SECOND)
  clock.mockClear()
  await vi.advanceTimersByTimeAsync(SECOND)
  expect(clock.mock.calls.length).toBeLessThanOrEqual(100)
  expect(asked).toHaveLength(1)
})

it('is refreshed once the clock gives a time again', async () => {
  let now = Date.now()
  const { keySet, asked } = keySetOn(() => ok(), { clock: () => now })
  await keySet.ready()
  const later = now + 300 * SECOND
  now = Number.NaN
  await vi.advanceTimersByTimeAsync(310 * SECOND)
  expect(asked).toHaveLength(1)
  now = later
  await vi.advanceTimersByTimeAsync(5 * SECOND)
  expect(asked).toHaveLength(2)
})

/** Second by second, with room for the wait between two tries, which passes in real time. */
async function passes(seconds: number): Promise<void> {
  for (let elapsed = 0; elapsed < seconds; elapsed++) {
    await vi.advanceTimersByTimeAsync(SECOND)
    await until('the next refresh is set', async () => vi.getTimerCount() > 0)
  }
}
