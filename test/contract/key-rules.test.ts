import type { DecisionEvent, ServiceAuthPolicy } from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import type { Receiver } from '../support/receiver/open-receiver.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN } from '../support/receiver/refusal-bytes.js'

/** Seconds since the epoch. */
const NOW = 1_800_000_000
let now = NOW
const issuer = await createTestIssuer({ clock: () => now * 1000 })
afterAll(() => issuer.close())

describe.each(EXPRESS_MAJORS)(
  'denied tokens, static keys and the cache, on $major',
  ({ express }) => {
    const start = (policy: ServiceAuthPolicy): Promise<Receiver> =>
      startReceiver({ express, mount: (app) => app.use(authFor(policy)) })

    it('a denied key costs no fetch and tells no kid that is not in the set', async () => {
      const own = await createTestIssuer()
      onTestFinished(() => own.close())
      const events: DecisionEvent[] = []
      const denylist = { keys: ['attacker-chosen', own.kid] }
      const onDecision = (event: DecisionEvent): unknown => events.push(event)
      const receiver = await start(own.policy({ denylist, onDecision }))
      await receiver.call(own.token({}, { kid: 'attacker-chosen' }))
      await receiver.call(own.token({}, { kid: 's-attacker-chosen' }))
      expect(own.fetches).toBe(0)
      await receiver.call(own.token({}, { kid: 'unknown' }))
      await receiver.call(own.token())
      expect(events.map((event) => event.keyId)).toEqual([undefined, undefined, undefined, own.kid])
    })

    it('a static key signs nothing unless the policy accepts it', async () => {
      const token = issuer.token({}, { kid: issuer.staticKid })
      const refusing = await start(issuer.policy())
      expect(await refusing.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
      expect((await refusing.call(issuer.token())).status).toBe(200)
      const accepting = await start(issuer.policy({ staticKeys: 'accept' }))
      expect((await accepting.call(token)).status).toBe(200)
      const denylist = { keys: [issuer.staticKid] }
      const denying = await start(issuer.policy({ staticKeys: 'accept', denylist }))
      expect(await denying.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
    })

    it('a remembered token is judged by the clock as it stands', async () => {
      const receiver = await start(issuer.policy({ maxLifetimeSeconds: 300 }))
      const token = issuer.token({ exp: NOW + 300, nbf: NOW })
      const statuses: number[] = []
      for (const at of [0, 304.999, 305, 304, -5, -5.001, 0]) {
        now = NOW + at
        statuses.push((await receiver.call(token)).status)
      }
      expect(statuses).toEqual([200, 200, 401, 200, 200, 401, 200])
    })

    it('a policy of another audience does not see what the first one has remembered', async () => {
      const receiver = await startReceiver({
        express,
        mount(app) {
          app.use('/orders', authFor(issuer.policy({ keySet: issuer.keySet, jwksUri: undefined })))
          const payments = { audience: 'payments', keySet: issuer.keySet, jwksUri: undefined }
          app.use('/payments', authFor(issuer.policy(payments)))
        },
      })
      const token = issuer.token()
      expect((await receiver.call(token, { path: '/orders' })).status).toBe(200)
      expect((await receiver.call(token, { path: '/payments' })).status).toBe(401)
      expect((await receiver.call(token, { path: '/orders' })).status).toBe(200)
    })
  },
)
