import { serviceAuth } from 'express-service-auth'
import { expect, it } from 'vitest'
import { serve } from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom } from '../../support/issuer/signing-keys.js'
import type { ManualClock } from '../../support/manual-clock.js'
import { behind, type Receiver, startReceiver } from '../../support/receiver/receiver.js'
import { nextKeySetEvent } from './key-set-events.js'
import { openReceiverOfKeySet } from './open-key-set.js'

const old = makeSigningKey('d-1')
const young = makeSigningKey('d-2')
const impostor = makeSigningKey('d-1')
const INVALID = { status: 401, challenge: 'Bearer realm="service", error="invalid_token"' }

/** Two receivers, one with a token cache and one without, on one key set. */
async function stage() {
  const opened = await openReceiverOfKeySet([serve({ keys: [old.jwk] })])
  const { server, clock, keySet, receiver: cached } = opened
  const plain = await startReceiver(
    behind(serviceAuth({ ...POLICY, keySet, clock, tokenCache: false })),
  )
  /** Swaps the set for what the server has now. */
  const refresh = async (): Promise<void> => {
    clock.advance(300)
    const fetched = nextKeySetEvent('fetched', server)
    await cached.call(tokenFrom(old, { now: clock(), claims: { sub: 'nobody' } }))
    await fetched
  }
  return { server, clock, receivers: [cached, plain], refresh }
}

const statuses = async (receivers: readonly Receiver[], token: string): Promise<number[]> =>
  Promise.all(receivers.map(async (receiver) => (await receiver.call(token)).status))

function tokenOf(key: typeof old, clock: ManualClock, jti = 'one'): string {
  const now = clock() / 1000
  return tokenFrom(key, { now: clock(), claims: { exp: now + 3000, jti } })
}

it('a key that is gone verifies nothing any more, cached tokens included', async () => {
  const { server, clock, receivers, refresh } = await stage()
  const token = tokenOf(old, clock)
  expect(await statuses(receivers, token)).toEqual([200, 200])
  expect(await statuses(receivers, token)).toEqual([200, 200])
  server.behave(serve({ keys: [young.jwk] }))
  await refresh()
  clock.advance(10)
  for (const receiver of receivers) expect(await receiver.call(token)).toMatchObject(INVALID)
  clock.advance(10)
  expect(await statuses(receivers, tokenOf(old, clock, 'two'))).toEqual([401, 401])
  expect(await statuses(receivers, tokenOf(young, clock))).toEqual([200, 200])
})

it('a key that is another under the same kid verifies only what the other has signed', async () => {
  const { server, clock, receivers, refresh } = await stage()
  const token = tokenOf(old, clock)
  expect(await statuses(receivers, token)).toEqual([200, 200])
  server.behave(serve({ keys: [impostor.jwk] }))
  await refresh()
  expect(await statuses(receivers, token)).toEqual([401, 401])
  expect(await statuses(receivers, tokenOf(impostor, clock))).toEqual([200, 200])
})
