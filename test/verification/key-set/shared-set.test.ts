import { type ServiceAuth, serviceAuth } from 'express-service-auth'
import { expect, it, onTestFinished } from 'vitest'
import { serve } from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom, withKid } from '../../support/issuer/signing-keys.js'
import { manualClock } from '../../support/manual-clock.js'
import { behind, type Receiver, startReceiver } from '../../support/receiver/receiver.js'
import { openKeySet, openKeySetServer } from './open-key-set.js'

const key = makeSigningKey('d-1')

const serverOfKey = () => openKeySetServer(serve({ keys: [key.jwk] }))
const receiverBehind = (auth: ServiceAuth): Promise<Receiver> => startReceiver(behind(auth))

it('one key set serves several policies with one fetch and one budget', async () => {
  const { server, clock, keySet } = await openKeySet([serve({ keys: [key.jwk] })])
  const orders = serviceAuth({ ...POLICY, keySet, clock })
  const stock = serviceAuth({ ...POLICY, audience: 'stock', keySet, clock })
  const receivers = [await receiverBehind(orders), await receiverBehind(stock)] as const
  const token = tokenFrom(key, { now: clock() })
  expect((await receivers[0].call(token)).status).toBe(200)
  expect((await receivers[1].call(token)).status).toBe(401)
  expect(server.requests).toHaveLength(1)
  for (let index = 0; index < 5; index++) {
    for (const receiver of receivers) await receiver.call(withKid(token, `random-${index}`))
  }
  expect(server.requests).toHaveLength(3)
  expect(orders.health().keySet).toEqual(keySet.health())
})

it("a policy's close leaves a shared set open", async () => {
  const { server, clock, keySet } = await openKeySet([serve({ keys: [key.jwk] })])
  const auth = serviceAuth({ ...POLICY, keySet, clock })
  auth.close()
  await auth.ready()
  clock.advance(3600)
  const receiver = await receiverBehind(auth)
  expect((await receiver.call(tokenFrom(key, { now: clock() }))).status).toBe(200)
  expect(server.requests).toHaveLength(2)
})

it("a policy's close closes the set that it made; what is held lives on until it expires", async () => {
  const server = await serverOfKey()
  const clock = manualClock()
  const auth = serviceAuth({ ...POLICY, jwksUri: server.url, clock })
  await auth.ready()
  auth.close()
  auth.close()
  const receiver = await receiverBehind(auth)
  const token = tokenFrom(key, { now: clock(), claims: { exp: clock() / 1000 + 3600 } })
  expect((await receiver.call(token)).status).toBe(200)
  expect((await receiver.call(withKid(token, 'unknown'))).status).toBe(401)
  clock.advance(3600)
  expect((await receiver.call(tokenFrom(key, { now: clock() }))).status).toBe(503)
  expect(auth.health().keySet.state).toBe('expired')
  expect(server.requests).toHaveLength(1)
})

it("a policy's clock rules the set that it makes", async () => {
  const server = await serverOfKey()
  const clock = manualClock()
  const auth = serviceAuth({ ...POLICY, jwksUri: server.url, clock })
  onTestFinished(() => auth.close())
  await auth.ready()
  expect(auth.health().keySet.expiresAt).toBe(clock() / 1000 + 3600)
  clock.advance(7)
  expect(auth.health().keySet.ageSeconds).toBe(7)
})
