import { randomUUID } from 'node:crypto'
import express from 'express'
import {
  type LeasedIdempotencyOptions,
  memoryStore,
  requireIdempotencyKey,
  requireSingleUse,
} from 'express-service-auth'
import { fromPg, postgresStore } from 'express-service-auth/postgres'
import { Pool } from 'pg'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { collectEvents } from '../../support/observe/channel-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { FAULT_STATUS } from '../../support/receiver/open-receiver.js'
import { authFor, startBehind } from '../../support/receiver/receiver.js'

const issuer = await createTestIssuer()
const ledger = await createLedger(await sharedPostgres())
afterAll(() => issuer.close())

/** A receiver on a leased store that accepts each token once; `store` replaces functions of it. */
async function openLeased(
  store: Partial<LeasedIdempotencyOptions['store'] & { consume: unknown }> = {},
  options: Partial<LeasedIdempotencyOptions> = {},
) {
  const decisions = collectEvents('decision')
  const inner = { ...memoryStore(), ...store } as LeasedIdempotencyOptions['store']
  const auth = authFor(issuer.policy())
  const once = requireIdempotencyKey({ store: inner, singleUse: true, operation: 'o', ...options })
  const receiver = await startBehind(express, auth, express.json(), once)
  const post = (token: string, key?: string, body = '{}') =>
    fetch(`${receiver.url}/orders`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      body,
    })
  const refusals = () =>
    decisions.flatMap((event) =>
      event.by === 'requireIdempotencyKey' && event.outcome !== 'accepted' ? [event.reason] : [],
    )
  return { receiver, post, refusals }
}

const newToken = (): string => issuer.token({ jti: randomUUID() })

describe('singleUse with a leased store', () => {
  it('uses the token up before the key is reserved, whatever comes of it', async () => {
    const { receiver, post, refusals } = await openLeased()
    const token = newToken()
    expect((await post(token, 'one')).status).toBe(200)
    // Two keys with one token, and a retry with the same.
    expect((await post(token, 'two')).status).toBe(401)
    expect((await post(token, 'one')).status).toBe(401)
    const reused = newToken()
    expect((await post(reused, 'one', '{"other":1}')).status).toBe(422)
    expect((await post(reused, 'one')).status).toBe(401)
    const replay = await post(newToken(), 'one')
    expect([replay.status, replay.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
    expect(receiver.handled).toBe(1)
    expect(refusals()).toEqual(['token_replayed', 'token_replayed', 'token_replayed'])
  })

  it('without a key, too', async () => {
    const { post } = await openLeased({}, { missingKey: 'run' })
    const token = newToken()
    expect([(await post(token)).status, (await post(token)).status]).toEqual([200, 401])
  })

  it('says 400 of the key before it says 401 of a token without jti', async () => {
    const { post, refusals } = await openLeased()
    const token = issuer.token({ jti: undefined })
    expect([(await post(token)).status, (await post(token, 'k')).status]).toEqual([400, 401])
    expect(refusals()).toEqual(['token_id_missing'])
  })

  it('is undecided while the store fails, and no key is reserved', async () => {
    let isDown = true
    const consume = async (): Promise<boolean> => {
      if (isDown) throw new Error('down')
      return true
    }
    const { receiver, post, refusals } = await openLeased({ consume })
    const refused = await post(newToken(), 'k')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    expect(refusals()).toEqual(['store_unavailable'])
    isDown = false
    expect((await post(newToken(), 'k')).status).toBe(200)
    expect(receiver.handled).toBe(1)
  })

  it('is next(error) for a store that resolves to no boolean', async () => {
    const { receiver, post } = await openLeased({ consume: async () => 'yes' })
    expect((await post(newToken(), 'k')).status).toBe(FAULT_STATUS)
    expect(receiver.handled).toBe(0)
  })

  it('needs a store that remembers tokens', () => {
    const { reserve, renew, settle } = memoryStore()
    const make = () => requireIdempotencyKey({ store: { reserve, renew, settle }, singleUse: true })
    expect(make).toThrow(TypeError)
    expect(make).toThrow('singleUse must not be true unless store has consume')
  })
})

describe('a proof of a bound token (DPoP) is used up in place of the token', () => {
  const dpop = { baseUrls: ['https://orders.test'] }
  const pool = new Pool({ connectionString: ledger.url })
  const coupled = postgresStore(fromPg(pool), { sweepSeconds: false })
  afterAll(async () => {
    coupled.close()
    await pool.end()
  })

  it.each([
    ['leased', memoryStore()],
    ['coupled', coupled],
  ])('%s', async (_kind, store) => {
    const auth = authFor(issuer.policy({ senderConstraint: { dpop } }))
    const once = requireIdempotencyKey({ store, singleUse: true, operation: 'o' })
    const receiver = await startBehind(express, auth, express.json(), once)
    const { token, proof } = issuer.boundToken()
    const newProof = () => proof({ method: 'POST', url: 'https://orders.test/orders' })
    const post = async (key: string, given: string) => {
      const headers = { authorization: `DPoP ${token}`, dpop: given, 'idempotency-key': key }
      const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
      return (await fetch(`${receiver.url}/orders`, { ...init, body: '{}' })).status
    }
    const used = newProof()
    expect([await post('one', used), await post('two', used)]).toEqual([200, 401])
    expect(await post('one', used)).toBe(401)
    expect([await post('two', newProof()), await post('one', newProof())]).toEqual([200, 200])
    expect(receiver.handled).toBe(2)
  })
})

it('requireSingleUse before it, with singleUse, is next(error)', async () => {
  const store = memoryStore()
  onTestFinished(() => store.close())
  const once = requireIdempotencyKey({ store, singleUse: true, operation: 'o' })
  const receiver = await startBehind(
    express,
    authFor(issuer.policy()),
    express.json(),
    requireSingleUse({ store }),
    once,
  )
  const headers = {
    authorization: `Bearer ${newToken()}`,
    'content-type': 'application/json',
    'idempotency-key': 'k',
  }
  const answer = await fetch(receiver.url, { method: 'POST', headers, body: '{}' })
  expect(answer.status).toBe(FAULT_STATUS)
  expect(receiver.errors).toMatchObject([{ code: 'wrong_wiring' }])
})
