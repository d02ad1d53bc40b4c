import { remoteKeySet, serviceAuth } from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Behaviour,
  hang,
  hangUp,
  respond,
  serve,
  startKeySetServer,
} from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom, withKid } from '../../support/issuer/signing-keys.js'
import { manualClock } from '../../support/manual-clock.js'
import { behind, startReceiver } from '../../support/receiver/receiver.js'

const old = makeSigningKey('d-1')
const young = makeSigningKey('d-2')

/** As the core answers in the last seconds of a key: `max-age` counts down to the rotation. */
const lastSeconds = serve({ keys: [old.jwk] }, { 'cache-control': 'max-age=12, must-revalidate' })
const after = serve({ keys: [young.jwk] }, { 'cache-control': 'max-age=600' })

/** A receiver whose policy makes its own key set, or has a shared one. */
async function stage(staleIfErrorSeconds: number | undefined, by: string, more: object = {}) {
  const server = await startKeySetServer(lastSeconds)
  const clock = manualClock()
  const options = {
    jwksUri: server.url,
    clock,
    ...(staleIfErrorSeconds !== undefined && { staleIfErrorSeconds }),
  }
  const policy =
    by === 'policy'
      ? { ...POLICY, ...options }
      : { ...POLICY, clock, keySet: remoteKeySet({ timeoutMs: 200, ...options, ...more }) }
  const auth = serviceAuth(policy)
  const receiver = await startReceiver(behind(auth))
  onTestFinished(() => {
    auth.close()
    return server.close()
  })
  await auth.ready()
  const claims = { exp: clock() / 1000 + 3600 }
  const tokenOf = (key: typeof old, jti: string): string =>
    tokenFrom(key, { now: clock(), claims: { ...claims, jti } })
  return { server, clock, auth, receiver, tokenOf }
}

const OUTAGES: readonly [string, Behaviour][] = [
  ['is unreachable', hangUp],
  ['is silent', hang],
]

describe.each(['policy', 'key set'])('staleIfErrorSeconds of a %s', (by) => {
  it('is 0 by default: the set expires with its max-age', async () => {
    const { server, clock, receiver, tokenOf } = await stage(undefined, by)
    const token = tokenOf(old, 'a')
    server.behave(hangUp)
    clock.advance(11.9)
    expect((await receiver.call(token)).status).toBe(200)
    clock.advance(0.1)
    expect((await receiver.call(token)).status).toBe(503)
  })

  it('keeps the set in use for so long while it cannot be fetched', async () => {
    const { server, clock, auth, receiver, tokenOf } = await stage(60, by)
    const [token, another] = [tokenOf(old, 'a'), tokenOf(old, 'b')]
    expect((await receiver.call(token)).status).toBe(200)
    server.behave(hangUp)
    for (const seconds of [12, 10, 20, 20, 9.9]) {
      clock.advance(seconds)
      expect((await receiver.call(token)).status).toBe(200)
      expect((await receiver.call(another)).status).toBe(200)
      expect(auth.health().keySet.state).toBe('stale')
    }
    clock.advance(0.1)
    const { status, retryAfter } = await receiver.call(token)
    expect([status, retryAfter]).toEqual([503, '5'])
    expect(auth.health().keySet).toMatchObject({ state: 'expired', keys: [] })
  })
})

describe('while a set is used past its max-age', () => {
  it.each(OUTAGES)(
    'of a server that %s, an unknown kid is the 503, never a 401',
    async (_, bad) => {
      const { server, clock, receiver, tokenOf } = await stage(60, 'key set')
      server.behave(bad)
      clock.advance(13)
      expect((await receiver.call(tokenOf(old, 'a'))).status).toBe(200)
      for (let call = 0; call < 3; call += 1) {
        expect((await receiver.call(withKid(tokenOf(old, 'b'), 'd-9'))).status).toBe(503)
        clock.advance(2)
      }
    },
  )

  it('a key that the set lacks once it can be fetched verifies nothing', async () => {
    const { server, clock, receiver, tokenOf } = await stage(600, 'key set')
    server.behave(hangUp)
    clock.advance(13)
    expect((await receiver.call(tokenOf(old, 'a'))).status).toBe(200)
    server.behave(after)
    // The back-off is over, and what failed before says nothing of now.
    clock.advance(60)
    expect((await receiver.call(tokenOf(old, 'a'))).status).toBe(401)
    expect((await receiver.call(tokenOf(old, 'b'))).status).toBe(401)
    expect((await receiver.call(tokenOf(young, 'c'))).status).toBe(200)
  })

  it('nothing is used without a failed fetch: a process may have been asleep', async () => {
    const { server, clock, receiver, tokenOf } = await stage(600, 'key set')
    server.behave(after)
    clock.advance(13)
    expect((await receiver.call(tokenOf(old, 'a'))).status).toBe(401)
    expect((await receiver.call(tokenOf(young, 'b'))).status).toBe(200)
  })

  it('a 304 confirms it', async () => {
    const tagged = { 'cache-control': 'max-age=12', etag: '"1"' }
    const { server, clock, auth, receiver, tokenOf } = await stage(60, 'key set')
    server.behave(serve({ keys: [old.jwk] }, tagged))
    clock.advance(12)
    expect((await receiver.call(tokenOf(old, 'a'))).status).toBe(200)
    server.behave(hangUp)
    clock.advance(13)
    expect((await receiver.call(tokenOf(old, 'a'))).status).toBe(200)
    server.behave(respond('304 Not Modified', '', { 'cache-control': 'max-age=600' }))
    clock.advance(40)
    expect((await receiver.call(tokenOf(old, 'a'))).status).toBe(200)
    expect(auth.health().keySet.state).toBe('fresh')
  })
})

it('is a number of seconds from 0 to 3600, and does not stand beside keySet', () => {
  const jwksUri = 'https://core.example/jwks.json'
  for (const staleIfErrorSeconds of [-1, 3600.1, Number.NaN, '5', null]) {
    const wrong = { jwksUri, staleIfErrorSeconds } as never
    expect(() => remoteKeySet(wrong)).toThrow(/staleIfErrorSeconds must be a number of seconds/)
    const policy = { ...POLICY, staleIfErrorSeconds } as never
    expect(() => serviceAuth(policy)).toThrow(/staleIfErrorSeconds must be a number of seconds/)
  }
  for (const staleIfErrorSeconds of [0, 0.5, 3600]) {
    remoteKeySet({ jwksUri, staleIfErrorSeconds }).close()
    serviceAuth({ ...POLICY, staleIfErrorSeconds }).close()
  }
  const keySet = remoteKeySet({ jwksUri })
  expect(() => serviceAuth({ ...POLICY, keySet, staleIfErrorSeconds: 0 })).toThrow(
    'staleIfErrorSeconds cannot be combined with keySet',
  )
})
