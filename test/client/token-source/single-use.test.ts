import { afterAll, describe, expect, it } from 'vitest'
import { startIdentityCore } from '../../support/core/identity-core/identity-core.js'
import { manualClock } from '../../support/manual-clock.js'
import { API_KEY } from '../claims.js'
import { failure, sourceAt, tokenOf } from '../kit.js'
import { answers, hangs, mints, startLyingCore } from '../lying-core.js'

const MAX_AT_ONCE = 8

const core = await startIdentityCore({ apiKey: API_KEY })
afterAll(() => core.close())

/** A `fetch` that counts how many of its requests are under way. */
function countingFetch() {
  const seen = { requests: 0, underWay: 0, mostAtOnce: 0 }
  const counted: typeof fetch = async (input, init) => {
    seen.requests += 1
    seen.underWay += 1
    seen.mostAtOnce = Math.max(seen.mostAtOnce, seen.underWay)
    return fetch(input, init).finally(() => {
      seen.underWay -= 1
    })
  }
  return { fetch: counted, seen }
}

describe('a source of single-use tokens', () => {
  it('gives each of a hundred calls a token of its own, with a few requests at a time', async () => {
    const { fetch, seen } = countingFetch()
    const source = sourceAt(core.url, { singleUse: true, fetch })
    const tokens = await Promise.all(Array.from({ length: 100 }, () => tokenOf(source)))
    expect(new Set(tokens).size).toBe(100)
    expect(seen).toEqual({ requests: 100, underWay: 0, mostAtOnce: MAX_AT_ONCE })
    const [refused = ''] = tokens
    expect(await tokenOf(source, refused)).not.toBe(refused)
    expect(source.health()).toEqual({ state: 'single_use' })
  })

  it('backs off after failures, of which those at the same time are one', async () => {
    const lying = await startLyingCore(answers(500, ''))
    const { fetch, seen } = countingFetch()
    const clock = manualClock()
    const source = sourceAt(lying.url, { singleUse: true, clock, fetch })
    await allReject(
      Array.from({ length: 50 }, () => source.token()),
      'core_failed',
    )
    expect(seen.requests).toBeLessThanOrEqual(MAX_AT_ONCE)
    const { requests } = seen
    await expect(source.token()).rejects.toMatchObject(failure('core_failed'))
    await expect(source.ready()).rejects.toMatchObject(failure('core_failed'))
    expect(seen.requests).toBe(requests)
    expect(source.health()).toMatchObject({ state: 'single_use', lastError: 'core_failed' })
    expect(source.health().retrySeconds).toBeLessThanOrEqual(1)

    lying.lie(mints())
    clock.advance(1)
    expect(await tokenOf(source)).toMatch(/^ey/)
    expect(source.health()).toEqual({ state: 'single_use' })
  })

  it('sends no request for a call whose turn comes after its time limit', async () => {
    const answer: (() => void)[] = []
    const lying = await startLyingCore((response, asked) => {
      answer.push(() => mints()(response, asked))
    })
    const clock = manualClock()
    const source = sourceAt(lying.url, { singleUse: true, clock, timeoutMs: 20_000 })
    const first = Array.from({ length: MAX_AT_ONCE }, () => source.token())
    const late = allReject([source.token()], 'core_timeout')
    await expect.poll(() => answer.length).toBe(MAX_AT_ONCE)
    clock.advance(20)
    for (const give of answer) give()
    await Promise.all([...first, late])
    expect(lying.requests).toHaveLength(MAX_AT_ONCE)
  })

  it('ends all calls when it is closed, also those that wait for their turn', async () => {
    const lying = await startLyingCore(hangs)
    const source = sourceAt(lying.url, { singleUse: true })
    const calls = allReject(
      Array.from({ length: 20 }, () => source.token()),
      'closed',
    )
    await expect.poll(() => lying.requests.length).toBe(MAX_AT_ONCE)
    source.close()
    await calls
    expect(lying.requests).toHaveLength(MAX_AT_ONCE)
  })
})

async function allReject(calls: readonly Promise<string>[], code: string): Promise<void> {
  const results = await Promise.allSettled(calls)
  const reasons = results.map((result) => (result.status === 'rejected' ? result.reason : result))
  expect(reasons).toEqual(calls.map(() => expect.objectContaining(failure(code))))
}
