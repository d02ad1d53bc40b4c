import { type DecisionEvent, remoteKeySet, type ServiceAuthPolicy } from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import type { Receiver } from '../support/receiver/open-receiver.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN } from '../support/receiver/refusal-bytes.js'

const issuer = await createTestIssuer()
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

    it('a remembered token is refused as soon as its key has left the set', async () => {
      for (const tokenCache of [{ max: 10 }, false] as const) {
        const own = await createTestIssuer()
        onTestFinished(() => own.close())
        const receiver = await start(own.policy({ tokenCache }))
        const token = own.token()
        expect((await receiver.call(token)).status).toBe(200)
        const removed = own.kid
        own.rotate()
        own.remove(removed)
        // Not known yet: nothing has been fetched since.
        expect((await receiver.call(token)).status).toBe(200)
        expect((await receiver.call(own.token())).status).toBe(200)
        expect(await receiver.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
      }
    })

    it('a remembered token is not carried over to another key of the same id', async () => {
      const [first, second] = await Promise.all([createTestIssuer(), createTestIssuer()])
      onTestFinished(() => Promise.all([first.close(), second.close()]).then(() => {}))
      const publicKeys = async (uri: string, kid: string) => {
        const { keys } = (await (await fetch(uri)).json()) as { keys: { kid: string }[] }
        return keys.filter((key) => key.kid === kid).map((key) => ({ ...key, kid: first.kid }))
      }
      let keys = await publicKeys(first.jwksUri, first.kid)
      const keySet = remoteKeySet({
        jwksUri: 'https://issuer.test/jwks.json',
        fetch: async () => Response.json({ keys }),
      })
      onTestFinished(() => keySet.close())
      const receiver = await start(first.policy({ keySet }))
      const token = first.token()
      expect((await receiver.call(token)).status).toBe(200)
      keys = await publicKeys(second.jwksUri, second.kid)
      expect((await receiver.call(first.token({}, { kid: 'unknown' }))).status).toBe(401)
      expect(await receiver.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
      const bySecond = second.token({ iss: first.url }, { kid: second.kid })
      const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: first.kid })).toString(
        'base64url',
      )
      const respelled = [header, ...bySecond.split('.').slice(1)].join('.')
      expect(await receiver.rawWith(`Bearer ${respelled}`)).toBe(INVALID_TOKEN)
    })

    it('one token in the cache, many, or none: the judgements are the same', async () => {
      for (const tokenCache of [{ max: 1 }, { max: 2 }, false] as const) {
        const receiver = await start(issuer.policy({ tokenCache }))
        const tokens = Array.from({ length: 4 }, () => issuer.token())
        for (const token of [...tokens, ...tokens, ...tokens.reverse()]) {
          expect((await receiver.call(token)).status).toBe(200)
        }
        const bad = `${tokens[0]?.slice(0, -4)}AAAA`
        expect(await receiver.rawWith(`Bearer ${bad}`)).toBe(INVALID_TOKEN)
      }
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
