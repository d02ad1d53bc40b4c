import { remoteKeySet } from 'express-service-auth'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { sourceOf } from '../../src/key-set/key-set.js'
import { manualClock } from '../support/manual-clock.js'
import { shapeOfKey } from '../support/signing-keys.js'

const KIDS = ['a', 'b', 'c']
const JWKS = new Map(KIDS.map((kid) => [kid, shapeOfKey(kid, 2048)]))
const MAX_STALE_SECONDS = 100

type Step =
  | { readonly type: 'publish'; readonly kids: readonly string[]; readonly maxAge: number | null }
  | { readonly type: 'fall ill'; readonly status: number }
  | { readonly type: 'pass'; readonly seconds: number }
  | { readonly type: 'ask'; readonly kid: string }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    type: fc.constant('publish' as const),
    kids: fc.subarray(KIDS),
    maxAge: fc.option(fc.integer({ min: 0, max: 200 })),
  }),
  fc.record({ type: fc.constant('fall ill' as const), status: fc.constantFrom(304, 404, 500) }),
  fc.record({ type: fc.constant('pass' as const), seconds: fc.integer({ min: 1, max: 120 }) }),
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('ask' as const), kid: fc.constantFrom(...KIDS, 'z') }),
  },
)

it('finds a key only where the last good response had it, and not longer than that may be used', async () => {
  const story = fc.array(step, { minLength: 3, maxLength: 12 })
  await fc.assert(fc.asyncProperty(story, follow), { numRuns: 40 })
}, 60_000)

async function follow(steps: readonly Step[]): Promise<void> {
  const clock = manualClock()
  let answer = (): Response => new Response('', { status: 500 })
  let good: { kids: readonly string[]; until: number } | undefined
  const fetch = async (): Promise<Response> => answer()
  const jwksUri = 'https://core.example/jwks.json'
  const keySet = remoteKeySet({ jwksUri, fetch, clock, maxStaleSeconds: MAX_STALE_SECONDS })
  const source = sourceOf(keySet)

  const publish = (kids: readonly string[], maxAge: number | null): void => {
    answer = () => {
      const seconds = Math.min(Math.max(10, maxAge ?? MAX_STALE_SECONDS), MAX_STALE_SECONDS)
      if (kids.length > 0) good = { kids, until: clock() + seconds * 1000 }
      const headers = maxAge === null ? {} : { 'cache-control': `max-age=${maxAge}` }
      return Response.json({ keys: kids.map((kid) => JWKS.get(kid)) }, { headers })
    }
  }

  for (const next of steps) {
    if (next.type === 'publish') publish(next.kids, next.maxAge)
    if (next.type === 'fall ill') answer = () => new Response(null, { status: next.status })
    if (next.type === 'pass') clock.advance(next.seconds)
    if (next.type !== 'ask') continue
    const found = await source?.find(next.kid).catch(() => undefined)
    const usable = good !== undefined && clock() < good.until ? good.kids : []
    if (found !== undefined) expect(usable).toContain(next.kid)
    expect(source?.current(next.kid) !== undefined).toBe(usable.includes(next.kid))
  }
  keySet.close()
}
