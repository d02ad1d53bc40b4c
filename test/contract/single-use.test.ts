import { type DecisionEvent, requireSingleUse, type SingleUseStore } from 'express-service-auth'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import { ignoreErrors } from '../support/receiver/own-error.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN } from '../support/receiver/refusal-bytes.js'

const NOW = 1_800_000_000
let now = NOW * 1000
const issuer = await createTestIssuer({ clock: () => now })
afterAll(() => issuer.close())
beforeEach(() => {
  now = NOW * 1000
})

/** A store that remembers what it was asked. */
function scriptedStore(answer: unknown = true) {
  const calls: { id: string; ttlMs: number }[] = []
  const store: SingleUseStore = {
    async consume(id, ttlMs) {
      calls.push({ id, ttlMs })
      return answer as boolean
    },
  }
  return { store, calls }
}

describe.each(EXPRESS_MAJORS)('requireSingleUse, on $major', ({ express }) => {
  it('tells issuers, callers and token ids apart, and nothing else', async () => {
    const { store, calls } = scriptedStore()
    const callers = ['billing', 'bill', 'ing']
    const other = { issuer: 'https://other.test' }
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use('/other', authFor(issuer.policy({ callers, ...other })))
        app.use('/here', authFor(issuer.policy({ callers })))
        app.use(requireSingleUse({ store }))
      },
    })
    const claims = [
      { sub: 'billing', jti: 'x' },
      { sub: 'bill', jti: 'ingx' },
      { sub: 'bill', jti: 'x' },
      { sub: 'billing', jti: '\ufffd' },
    ]
    for (const claim of claims) await receiver.call(issuer.token(claim), { path: '/here' })
    const elsewhere = issuer.token({ ...claims[0], iss: other.issuer })
    await receiver.call(elsewhere, { path: '/other' })
    expect(receiver.handled).toBe(5)
    expect(new Set(calls.map(({ id }) => id)).size).toBe(5)
    for (const { id } of calls) expect(id).not.toMatch(/billing|ing|other/)
    await receiver.call(issuer.token({ ...claims[0], extra: 1, exp: NOW + 9 }), { path: '/here' })
    expect(calls.at(-1)?.id).toBe(calls[0]?.id)
  })

  it('reserves once where it stands twice with one store, and in each of two stores', async () => {
    const one = scriptedStore()
    const two = scriptedStore()
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use(authFor(issuer.policy()))
        app.use(requireSingleUse({ store: one.store }), requireSingleUse({ store: one.store }))
        app.use(requireSingleUse({ store: two.store }))
      },
    })
    expect((await receiver.call(issuer.token())).status).toBe(200)
    expect(one.calls).toHaveLength(1)
    expect(two.calls).toHaveLength(1)
  })

  it('refuses a token that has expired on its way from serviceAuth, and records nothing', async () => {
    for (const late of [305, 306, 3600]) {
      now = NOW * 1000
      const { store, calls } = scriptedStore()
      const receiver = await startReceiver({
        express,
        mount(app) {
          app.use(authFor(issuer.policy()))
          app.use((_request, _response, next) => {
            // A body that trickles in, for instance: its record would be gone before a second use.
            now = (NOW + late) * 1000
            next()
          })
          app.use(requireSingleUse({ store }))
        },
      })
      expect(await receiver.rawWith(`Bearer ${issuer.token()}`)).toBe(INVALID_TOKEN)
      expect(calls).toEqual([])
    }
  })

  it('remembers a token for a minute to a quarter of an hour longer than it lives', async () => {
    const { store, calls } = scriptedStore()
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy()), requireSingleUse({ store })),
    })
    const token = issuer.token()
    for (const [ageSeconds, livesMs] of [
      [0, 305_000],
      [300.0004, 4_999.6],
    ] as const) {
      now = (NOW + ageSeconds) * 1000
      expect((await receiver.call(token)).status).toBe(200)
      const { ttlMs } = calls.at(-1) ?? { ttlMs: 0 }
      expect(Number.isSafeInteger(ttlMs)).toBe(true)
      expect(ttlMs - livesMs).toBeGreaterThanOrEqual(60_000)
      expect(ttlMs - livesMs).toBeLessThanOrEqual(900_000)
    }
  })

  it('asks no store about an id that is missing, empty or too long', async () => {
    const { store, calls } = scriptedStore()
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy()), requireSingleUse({ store })),
    })
    for (const jti of [undefined, '', 'x'.repeat(257)]) {
      expect(await receiver.rawWith(`Bearer ${issuer.token({ jti })}`)).toBe(INVALID_TOKEN)
    }
    expect(calls).toEqual([])
    const ids = ['x', 'x'.repeat(256), ' ', '\0']
    for (const jti of ids) expect((await receiver.call(issuer.token({ jti }))).status).toBe(200)
    expect(calls).toHaveLength(ids.length)
  })

  it('does not take a use that could not be decided for one, whatever handles the error', async () => {
    const { store } = scriptedStore('broken')
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use(authFor(issuer.policy()), requireSingleUse({ store }), ignoreErrors)
        app.use(requireSingleUse({ store }))
      },
    })
    expect((await receiver.call(issuer.token())).status).toBe(FAULT_STATUS)
    expect(receiver.handled).toBe(0)
  })

  it("tells its own observer and the policy's, each of them once", async () => {
    const { store } = scriptedStore()
    const [told, own, both]: DecisionEvent[][] = [[], [], []]
    const shared = (event: DecisionEvent): unknown => both?.push(event)
    const receiver = await startReceiver({
      express,
      mount(app) {
        const onDecision = (event: DecisionEvent): unknown => told?.push(event)
        app.use('/own', authFor(issuer.policy({ onDecision })))
        app.use('/own', requireSingleUse({ store, onDecision: (event) => own?.push(event) }))
        app.use('/shared', authFor(issuer.policy({ onDecision: shared })))
        app.use('/shared', requireSingleUse({ store, onDecision: shared }))
      },
    })
    await receiver.call(issuer.token(), { path: '/own' })
    await receiver.call(issuer.token({ jti: undefined }), { path: '/own' })
    const caller = { caller: 'billing', keyId: issuer.kid }
    const decided = { by: 'requireSingleUse', ...caller }
    const accepted = { ...decided, outcome: 'accepted', confirmation: 'none' }
    const refusal = { reason: 'token_id_missing', claim: 'jti', status: 401 }
    const refused = { ...decided, outcome: 'refused', ...refusal }
    expect(own).toEqual([accepted, refused])
    expect(told?.filter(({ by }) => by === 'requireSingleUse')).toEqual([accepted, refused])
    await receiver.call(issuer.token(), { path: '/shared' })
    expect(both?.map(({ by }) => by)).toEqual(['serviceAuth', 'requireSingleUse'])
  })
})

it.each<[unknown, string]>([
  [undefined, 'the options must be an object'],
  [{}, 'store must be a store with consume'],
  [{ store: null }, 'store must be a store with consume'],
  [{ store: { consume: true } }, 'store must be a store with consume'],
  [{ store: { consume: async () => true }, onDecision: 1 }, 'onDecision must be a function'],
  [{ store: { consume: async () => true }, ttl: 1 }, 'ttl is not an option'],
])('requireSingleUse with %j is a TypeError that says: %s', (options, message) => {
  const make = () => requireSingleUse(options as never)
  expect(make).toThrow(TypeError)
  expect(make).toThrow(message)
})
