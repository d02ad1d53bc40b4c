import { randomUUID } from 'node:crypto'
import express from 'express'
import { requireSingleUse } from 'express-service-auth'
import { singleUseStoreCases } from 'express-service-auth/testing'
import { Client, type Pool } from 'pg'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { startPostgresProxy } from '../../support/postgres/postgres-proxy.js'
import {
  type CoupledOptions,
  createLedger,
  openCoupled,
} from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { testCases } from '../../support/stores/store-cases.js'
import { until } from '../../support/until.js'
import { withResolvers } from '../../support/with-resolvers.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)
const proxy = await startPostgresProxy(postgres)
const proxied = proxy.urlFor(new URL(ledger.url).pathname.slice(1))

interface Opened extends Partial<Omit<CoupledOptions, 'handler'>> {
  /** By default a success. 0: the handler never answers. */
  readonly status?: () => number
  /** Runs after the write of the handler. */
  readonly work?: (transaction: Pool) => Promise<unknown>
  readonly keepsWrites?: boolean
}

const openSingle = ({ status = () => 201, work, keepsWrites, ...given }: Opened = {}) =>
  openCoupled({
    url: ledger.url,
    ...given,
    options: { singleUse: true, ...given.options },
    store: { acquireMs: 20_000, ...given.store },
    handler: (store) => async (request, response) => {
      const transaction = store.transactionOf(request)
      await transaction.query('insert into effect (key) values ($1)', [effect])
      if (keepsWrites) store.keepWrites(request)
      await work?.(transaction as unknown as Pool)
      if (status() === 0) return
      response.status(status()).json({ done: true })
    },
  })

let effect = ''
const written = (): Promise<number> => ledger.effects(effect)
const newToken = () => ({ claims: { jti: randomUUID() } })
const usedTokens = async (): Promise<number> =>
  (await ledger.query('select from service_auth.used_token')).length

beforeEach(async () => {
  effect = randomUUID()
  await ledger.query('delete from service_auth.used_token')
})

const CASES = [
  { what: 'a success', status: 201, keyed: 1, unkeyed: 1, effects: 1 },
  { what: 'a refusal', status: 404, keyed: 1, unkeyed: 0, effects: 0 },
  { what: 'a refusal after keepWrites', status: 404, keyed: 1, unkeyed: 1, effects: 1, keep: true },
  { what: 'a failure', status: 500, keyed: 0, unkeyed: 0, effects: 0 },
] as const

describe('a token is used exactly when the write or the record commits', () => {
  it.each(CASES)(
    '$what, with a key and without',
    async ({ status, keyed, unkeyed, effects, ...rest }) => {
      const options = { missingKey: 'run' } as const
      const receiver = await openSingle({
        status: () => status,
        keepsWrites: 'keep' in rest,
        options,
      })
      for (const [used, keyOf] of [
        [keyed, () => ({ key: newKey() })],
        [unkeyed, () => ({})],
      ] as const) {
        effect = randomUUID()
        const [token, before] = [newToken(), await usedTokens()]
        expect(await call(receiver.port, { ...token, ...keyOf() })).toMatchObject({ status })
        expect([(await usedTokens()) - before, await written()]).toEqual([used, effects])
        const again = await call(receiver.port, { ...token, ...keyOf() })
        expect(again.status).toBe(used === 1 ? 401 : status)
      }
    },
  )

  it('not after a time-out', async () => {
    const receiver = await openSingle({ status: () => 0, store: { transactionMs: 120 } })
    expect(await call(receiver.port, { ...newToken(), key: newKey() })).toMatchObject({
      status: 503,
    })
    expect([await usedTokens(), await written()]).toEqual([0, 0])
  })

  it('not after a connection that broke before COMMIT, and not twice after one that broke at it', async () => {
    const receiver = await openSingle({ url: proxied })
    const given = { ...newToken(), key: newKey() }
    proxy.cutAt({ at: /^insert into "service_auth"\.idempotency/, moment: 'before' })
    expect(await call(receiver.port, given)).toMatchObject({ status: 503 })
    expect([await usedTokens(), await written()]).toEqual([0, 0])
    proxy.cutAt({ at: /^commit/i, moment: 'after' })
    expect(await call(receiver.port, given)).toMatchObject({ status: 201 })
    expect([await usedTokens(), await written()]).toEqual([1, 1])
  })

  it('when the handler ends the transaction itself, and its answer is recorded', async () => {
    const work = (transaction: Pool) => transaction.query('select 1; rollback')
    const receiver = await openSingle({ work })
    const events = hearIdempotency()
    expect(await call(receiver.port, { ...newToken(), key: newKey() })).toMatchObject({
      status: 201,
    })
    expect(events.map(({ reason }) => reason)).toEqual(['reserved', 'uncoupled'])
    expect(await usedTokens()).toBe(1)
  })
})

describe('one token in several requests', () => {
  it('of 50 keys at once, one passes', async () => {
    const receiver = await openSingle()
    const token = newToken()
    const keys = Array.from({ length: 50 }, newKey)
    const answers = await Promise.all(keys.map((key) => call(receiver.port, { ...token, key })))
    const others = answers.filter(({ status }) => status !== 401 && status !== 503)
    expect(others.map(({ status }) => status)).toEqual([201])
    expect([receiver.handled, await written(), await usedTokens()]).toEqual([1, 1, 1])
    // Nothing is kept of those that were refused.
    const refused = keys[answers.findIndex(({ status }) => status !== 201)]
    expect(await call(receiver.port, { key: refused })).toMatchObject({ status: 201 })
  })

  it('while a run has it, another key gets 503 at once and its own key 409; then 401', async () => {
    const events = hearIdempotency()
    const { promise: answered, resolve: answer } = withResolvers()
    const receiver = await openSingle({ work: () => answered })
    const [token, key] = [newToken(), newKey()]
    const first = call(receiver.port, { ...token, key })
    await until('it runs', async () => receiver.handled === 1)
    const beside = await call(receiver.port, { ...token, key: newKey() })
    expect(beside).toMatchObject({ status: 503, headers: { 'retry-after': ['1'] } })
    expect(events.at(-1)).toMatchObject({ outcome: 'undecided', reason: 'conflict', status: 503 })
    expect(await call(receiver.port, { ...token, key })).toMatchObject({
      status: 409,
      problem: 'request-in-progress',
    })
    answer()
    expect(await first).toMatchObject({ status: 201 })
    expect(await call(receiver.port, { ...token, key: newKey() })).toMatchObject({ status: 401 })
    expect(receiver.handled).toBe(1)
  })

  it('used by another request before the record of a refusal: it is sent, and not kept', async () => {
    const events = hearIdempotency()
    const receiver = await openSingle({
      status: () => 404,
      runner: (onPg) => ({
        ...onPg,
        async transaction(work, limits) {
          try {
            return await onPg.transaction(work, limits)
          } finally {
            if (receiver.handled === 1) await call(replays.port, { ...token, key: kept })
          }
        },
      }),
    })
    const replays = await openSingle()
    const [token, key, kept] = [newToken(), newKey(), newKey()]
    await call(replays.port, { key: kept })
    expect(await call(receiver.port, { ...token, key })).toMatchObject({ status: 404 })
    expect(events.at(-1)).toMatchObject({ reason: 'conflict', status: 404 })
    expect(await call(receiver.port, { key })).toMatchObject({ status: 404 })
    expect(receiver.handled).toBe(2)
  })

  it('used after the snapshot of a run: 503, and a retry at once is the 401', async () => {
    const token = newToken()
    const other = await openSingle()
    let isFirst = true
    const receiver = await openSingle({
      store: { isolation: 'repeatable read' },
      runner: (onPg) => ({
        ...onPg,
        transaction: (work, limits) =>
          onPg.transaction(async (tx) => {
            await tx.query('select count(*) from effect')
            if (isFirst) await call(other.port, { ...token, key: newKey() })
            isFirst = false
            return work(tx)
          }, limits),
      }),
    })
    const given = { ...token, key: newKey() }
    expect(await call(receiver.port, given)).toMatchObject({
      status: 503,
      headers: { 'retry-after': ['0'] },
    })
    expect(await call(receiver.port, given)).toMatchObject({ status: 401 })
    expect(receiver.handled).toBe(0)
  })
})

it('a replay uses up the token of the retry; 409 and 422 use up none', async () => {
  const receiver = await openSingle()
  const key = newKey()
  const first = { ...newToken(), key }
  expect(await call(receiver.port, first)).toMatchObject({ status: 201 })
  expect(await call(receiver.port, first)).toMatchObject({ status: 401 })
  const second = { ...newToken(), key }
  expect(await call(receiver.port, { ...second, body: '{"other":1}' })).toMatchObject({
    status: 422,
  })
  expect(await call(receiver.port, second)).toMatchObject({
    status: 201,
    headers: { 'idempotent-replayed': ['true'] },
  })
  expect(await call(receiver.port, second)).toMatchObject({ status: 401 })
  expect([receiver.handled, await usedTokens()]).toEqual([1, 2])
})

it('another run has committed first: its answer uses up the token', async () => {
  let runs = 0
  const receiver = await openSingle({
    work: async () => {
      runs += 1
      if (runs > 1) await ledger.query('insert into service_auth.idempotency select * from saved')
    },
  })
  const key = newKey()
  await call(receiver.port, { key })
  await ledger.query('create table saved as select * from service_auth.idempotency')
  await ledger.query('delete from service_auth.idempotency')
  const given = { ...newToken(), key }
  expect(await call(receiver.port, given)).toMatchObject({
    status: 201,
    headers: { 'idempotent-replayed': ['true'] },
  })
  expect(receiver.errors).toEqual([])
  expect([await written(), await usedTokens()]).toEqual([1, 2])
  expect(await call(receiver.port, given)).toMatchObject({ status: 401 })
})

it('the row outlives exp and the tolerance', async () => {
  const receiver = await openSingle({ more: { policy: { clockToleranceSeconds: 30 } } })
  const exp = Math.floor(Date.now() / 1000) + 60
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

describe('consume', () => {
  testCases(singleUseStoreCases(async () => (await openSingle()).store))
})

it('requireSingleUse with the same store burns a token by its first try', async () => {
  const receiver = await openSingle({
    options: { singleUse: false },
    status: () => 500,
    more: (store) => ({ parsers: [express.json(), requireSingleUse({ store })] }),
  })
  const token = newToken()
  expect(await call(receiver.port, { ...token, key: newKey() })).toMatchObject({ status: 500 })
  expect(await usedTokens()).toBe(1)
  expect(await call(receiver.port, { ...token, key: newKey() })).toMatchObject({ status: 401 })
})

it('something else answers while a replay uses its token up: no process ends', async () => {
  const faults: unknown[] = []
  const note = (error: unknown): void => void faults.push(error)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  let isImpatient = false
  const receiver = await openSingle({
    more: {
      outer: [
        (_request, response, next) => {
          if (isImpatient) setTimeout(() => response.status(504).end(), 50)
          next()
        },
      ],
    },
  })
  const key = newKey()
  expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
  const blocker = new Client({ connectionString: ledger.url })
  await blocker.connect()
  await blocker.query('begin; lock table service_auth.used_token in access exclusive mode')
  isImpatient = true
  expect(await call(receiver.port, { key })).toMatchObject({ status: 504 })
  await blocker.end()
  await expect.poll(() => receiver.errors.length).toBe(1)
  expect(faults).toEqual([])
})
