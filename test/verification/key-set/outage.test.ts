import { expect, it } from 'vitest'
import { type Behaviour, hangUp, respond, serve } from '../../support/issuer/key-set-server.js'
import { openReceiverOfKeySet } from '../../support/issuer/open-key-set.js'
import { makeSigningKey, tokenFrom } from '../../support/issuer/signing-keys.js'
import { nextKeySetEvent } from '../../support/observe/key-set-events.js'

const key = makeSigningKey('d-1')
const good = serve({ keys: [key.jwk] })

async function stage(behaviour: Behaviour) {
  const opened = await openReceiverOfKeySet([behaviour])
  const { clock } = opened
  const tokens = Array.from({ length: 200 }, (_, index) =>
    tokenFrom(key, { now: clock(), claims: { jti: `${index}`, exp: clock() / 1000 + 3600 } }),
  )
  return { ...opened, tokens }
}

it.each<[string, Behaviour]>([
  ['that resets connections', hangUp],
  ['that answers 500', respond('500 Internal Server Error', '')],
])(
  'two hundred requests over two seconds of an outage %s cause at most ten',
  async (_name, bad) => {
    const { server, clock, receiver, tokens } = await stage(bad)
    for (const token of tokens) {
      expect((await receiver.call(token)).status).toBe(503)
      clock.advance(0.01)
    }
    expect(server.requests.length).toBeGreaterThan(2)
    expect(server.requests.length).toBeLessThanOrEqual(10)
  },
)

it('an outage with a set held is felt by nobody, and costs at most ten fetches in two seconds', async () => {
  const { server, clock, receiver, tokens } = await stage(good)
  expect((await receiver.call(tokens[0] ?? '')).status).toBe(200)
  server.behave(hangUp)
  clock.advance(300)
  for (const token of tokens) {
    expect((await receiver.call(token)).status).toBe(200)
    clock.advance(0.01)
  }
  expect(server.requests.length).toBeGreaterThan(1)
  expect(server.requests.length).toBeLessThanOrEqual(1 + 10)
})

it('the first request after the back-off finds the server well again', async () => {
  const { server, clock, keySet, receiver, tokens } = await stage(hangUp)
  const [token = ''] = tokens
  for (let failures = 0; failures < 5; failures++) {
    expect((await receiver.call(token)).status).toBe(503)
    clock.advance(30)
  }
  server.behave(good)
  expect((await receiver.call(token)).status).toBe(200)
  expect(keySet.health()).toMatchObject({ state: 'fresh', keys: ['d-1'] })
})

it('a set that is held outlives the outage to the second that was promised', async () => {
  const { server, clock, keySet, receiver } = await stage(good)
  const statusNow = async (): Promise<number> =>
    (await receiver.call(tokenFrom(key, { now: clock() }))).status
  expect(await statusNow()).toBe(200)
  server.behave(hangUp)
  for (let minutes = 5; minutes < 60; minutes += 5) {
    clock.advance(300)
    const failed = nextKeySetEvent('failed', server)
    expect(await statusNow()).toBe(200)
    await failed
  }
  clock.advance(299.999)
  expect(await statusNow()).toBe(200)
  clock.advance(0.001)
  expect(await statusNow()).toBe(503)
  expect(keySet.health()).toMatchObject({ state: 'expired', keys: [], lastError: 'network' })
})
