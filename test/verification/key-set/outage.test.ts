import { expect, it } from 'vitest'
import { type Behaviour, hangUp, respond, serve } from '../../support/issuer/key-set-server.js'
import { openReceiverOfKeySet } from '../../support/issuer/open-key-set.js'
import { makeSigningKey, tokenFrom } from '../../support/issuer/signing-keys.js'

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
