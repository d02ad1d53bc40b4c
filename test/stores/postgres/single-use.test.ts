import { randomUUID } from 'node:crypto'
import express from 'express'
import { requireSingleUse } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { startPostgresProxy } from '../../support/postgres/postgres-proxy.js'
import { createLedger, openCoupled, writeEffect } from '../../support/receiver/coupled-receiver.js'
import { type Call, call, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)
const proxy = await startPostgresProxy(postgres)
const proxied = proxy.urlFor(new URL(ledger.url).pathname.slice(1))

const WITHINS = ['statement', 'transaction'] as const
type Within = (typeof WITHINS)[number]

interface Opened {
  readonly within: Within
  /** By default a success. */
  readonly status?: () => number
  readonly url?: string
  readonly max?: number
  readonly transactionMs?: number
  readonly policy?: OrdersOptions['policy']
}

/** A receiver behind a key and a single use, in the order that `within` asks for. */
async function openSingle(given: Opened) {
  const { within, status = () => 201, url = ledger.url, max = 10, transactionMs, policy } = given
  return openCoupled({
    url,
    pool: { max },
    store: { acquireMs: 20_000, ...(transactionMs && { transactionMs }) },
    more: (store) => {
      const single = requireSingleUse({ store, within })
      const place =
        within === 'statement' ? { parsers: [express.json(), single] } : { inner: [single] }
      return { ...place, ...(policy && { policy }) }
    },
    handler: (store) => async (request, response) => {
      await writeEffect(store, request)
      if (status() === 0) return
      response.status(status()).json({ done: true })
    },
  })
}

const usedTokens = async (): Promise<number> => {
  const [row] = await ledger.query<{ n: string }>(
    'select count(*) as n from service_auth.used_token',
  )
  return Number(row?.n)
}

describe.each(WITHINS)("within: '%s'", (within) => {
  it('of 50 requests with one token at once, one passes', async () => {
    const receiver = await openSingle({ within })
    const claims = { jti: randomUUID() }
    const keys = Array.from({ length: 50 }, newKey)
    const answers = await Promise.all(keys.map((key) => call(receiver.port, { key, claims })))
    const statuses = answers.map(({ status }) => status)
    const others = statuses.filter((status) => status !== 401)
    expect(others).toEqual([201])
    expect(receiver.handled).toBe(1)
    const winner = keys[statuses.indexOf(201)] as string
    expect(await ledger.effects(winner)).toBe(1)
    // Nothing is kept of those that were refused.
    const other = keys[statuses.indexOf(401)] as string
    expect(await call(receiver.port, { key: other })).toMatchObject({ status: 201 })
  })

  it.each([
    ['a success', 201, 1],
    ['a refusal', 404, 0],
    ['a failure', 500, 0],
  ])('after %s the token stays used', async (_what, status, effects) => {
    const receiver = await openSingle({ within, status: () => status })
    const given = { key: newKey(), claims: { jti: randomUUID() } }
    const before = await usedTokens()
    expect(await call(receiver.port, given)).toMatchObject({ status })
    expect(await usedTokens()).toBe(before + 1)
    expect(await call(receiver.port, given)).toMatchObject({ status: 401 })
    expect(await call(receiver.port, { ...given, key: newKey() })).toMatchObject({ status: 401 })
    expect(await ledger.effects(given.key)).toBe(effects)
    // With a fresh token the retry gets what there is.
    expect(await call(receiver.port, { key: given.key })).toMatchObject({ status })
  })

  it('after a time-out it stays used', async () => {
    const receiver = await openSingle({ within, status: () => 0, transactionMs: 120 })
    const given = { key: newKey(), claims: { jti: randomUUID() } }
    expect(await call(receiver.port, given)).toMatchObject({ status: 503 })
    await expect
      .poll(async () => (await call(receiver.port, { ...given, key: newKey() })).status)
      .toBe(401)
    expect(await ledger.effects(given.key)).toBe(0)
  })

  it('without a usable jti: 401', async () => {
    const receiver = await openSingle({ within })
    for (const jti of [undefined, '', 'x'.repeat(257)]) {
      const answer = await call(receiver.port, { key: newKey(), claims: { jti } })
      expect(answer).toMatchObject({ status: 401 })
    }
    const longest = { jti: `${randomUUID()}${'x'.repeat(220)}` }
    expect(await call(receiver.port, { key: newKey(), claims: longest })).toMatchObject({
      status: 201,
    })
    expect(receiver.handled).toBe(1)
  })

  it('the row outlives exp and the tolerance', async () => {
    const receiver = await openSingle({ within, policy: { clockToleranceSeconds: 30 } })
    const exp = Math.floor(Date.now() / 1000) + 60
    await ledger.query('delete from service_auth.used_token')
    await call(receiver.port, { key: newKey(), claims: { exp } })
    const [row] = await ledger.query<{ until: string }>(
      'select extract(epoch from expires_at) as until from service_auth.used_token',
    )
    const beyond = Number(row?.until) - (exp + 30)
    expect(beyond).toBeGreaterThan(60)
    expect(beyond).toBeLessThan(180)
    expect(await receiver.store.sweep()).toBe(0)
    expect(await usedTokens()).toBe(1)
  })

  it('at the edge of exp a token is used once, and expired after it', async () => {
    let now = Date.now()
    const receiver = await openSingle({
      within,
      policy: { clockToleranceSeconds: 0, clock: () => now },
    })
    const exp = Math.floor(now / 1000) + 10
    const given = { claims: { exp, iat: exp - 20, jti: randomUUID() } }
    now = exp * 1000 - 1
    expect(await call(receiver.port, { ...given, key: newKey() })).toMatchObject({ status: 201 })
    expect(await call(receiver.port, { ...given, key: newKey() })).toMatchObject({ status: 401 })
    await receiver.store.sweep()
    expect(await call(receiver.port, { ...given, key: newKey() })).toMatchObject({ status: 401 })
    now = exp * 1000
    const late = { claims: { ...given.claims, jti: randomUUID() } }
    expect(await call(receiver.port, { ...late, key: newKey() })).toMatchObject({ status: 401 })
    expect(receiver.handled).toBe(1)
  })
})

describe('beside the record', () => {
  it.each(WITHINS)('a replay needs a fresh token where the run used one, %s', async (within) => {
    const receiver = await openSingle({ within })
    const key = newKey()
    const first = { key, claims: { jti: randomUUID() } }
    expect(await call(receiver.port, first)).toMatchObject({ status: 201 })
    const [row] = await ledger.query<{ single_use: boolean }>(
      'select single_use from service_auth.idempotency order by expires_at desc limit 1',
    )
    expect(row?.single_use).toBe(within === 'transaction')

    expect(await call(receiver.port, first)).toMatchObject({ status: 401 })
    const second = { key, claims: { jti: randomUUID() } }
    const replay = await call(receiver.port, second)
    expect(replay).toMatchObject({ status: 201, headers: { 'idempotent-replayed': ['true'] } })
    // The replay has used it up.
    expect(await call(receiver.port, second)).toMatchObject({ status: 401 })
    expect(await call(receiver.port, { key, claims: { jti: undefined } })).toMatchObject({
      status: 401,
    })
    const other: Call = { key, body: '{"other":1}' }
    expect(await call(receiver.port, other)).toMatchObject({ status: 422 })
    expect(receiver.handled).toBe(1)
  })

  it('in the transaction, only a crash frees it, with the write', async () => {
    const receiver = await openSingle({ within: 'transaction', url: proxied, max: 1 })
    const given = { key: newKey(), claims: { jti: randomUUID() } }
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 201 })
    // What the process cannot tell the database any more is as after its crash.
    proxy.fail('accepted and closed')
    proxy.cutAt({ at: /insert into effect/, moment: 'before' })
    const { status } = await call(receiver.port, given)
    expect([500, 503]).toContain(status)
    await proxy.heal()
    expect(await ledger.effects(given.key)).toBe(0)
    expect(await call(receiver.port, given)).toMatchObject({ status: 201 })
    expect(await ledger.effects(given.key)).toBe(1)
  })

  it('after a cut, while the database is there, it stays used', async () => {
    const events = hearIdempotency()
    const receiver = await openSingle({ within: 'transaction', url: proxied })
    const given = { key: newKey(), claims: { jti: randomUUID() } }
    proxy.cutAt({ at: /^insert into "service_auth"\.idempotency/, moment: 'before' })
    expect(await call(receiver.port, given)).toMatchObject({ status: 503 })
    expect(events.at(-1)).toMatchObject({ outcome: 'undecided' })
    expect(await call(receiver.port, given)).toMatchObject({ status: 401 })
    expect(await ledger.effects(given.key)).toBe(0)
  })

  it('wrong wiring: before the key, or of another store', async () => {
    const other = (await openCoupled({ url: ledger.url, handler: () => () => {} })).store
    const wrong = requireSingleUse({ store: other, within: 'transaction' })
    for (const place of ['parsers', 'inner'] as const) {
      const receiver = await openCoupled({
        url: ledger.url,
        more: { [place]: [express.json(), wrong] },
        handler: () => (_request, response) => void response.sendStatus(201),
      })
      expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 500 })
      expect(receiver.errors).toMatchObject([{ code: 'wrong_wiring' }])
      expect(receiver.handled).toBe(0)
    }
  })

  it('by a statement of its own it must stand before the key', async () => {
    const receiver = await openCoupled({
      url: ledger.url,
      more: (store) => ({ inner: [requireSingleUse({ store })] }),
      handler: () => (_request, response) => void response.sendStatus(201),
    })
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 500 })
    expect(receiver.errors).toMatchObject([{ code: 'wrong_wiring' }])
  })
})
