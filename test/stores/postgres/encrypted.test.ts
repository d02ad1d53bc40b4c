import { randomBytes, randomUUID } from 'node:crypto'
import { encryptedStore } from 'express-service-auth'
import { fromPg, type PostgresStore, postgresStore } from 'express-service-auth/postgres'
import { Pool, type PoolClient } from 'pg'
import { expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../../support/receiver/express-majors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { knowSecret } from '../../support/secret-search/index.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

type Keys = Readonly<Record<string, Uint8Array>>

const [OLD, NEW] = [randomBytes(32), randomBytes(32)]
for (const key of [OLD, NEW]) knowSecret('an encryption key', key)

const SECRET_BODY = { iban: `DE${randomUUID()}` }

async function openEncrypted(keys: Keys, current: string) {
  const pool = new Pool({ connectionString: ledger.url })
  const inner = postgresStore(fromPg(pool), { sweepSeconds: false })
  const store = encryptedStore(inner, { keys, current })
  const receiver = await openOrders({
    express: EXPRESS_MAJORS[1]?.express as ExpressModule,
    store,
    options: { maxResponseBytes: 1000, singleUse: true },
    async handler(request, response) {
      const key = request.idempotency?.key
      await store.transactionOf(request).query('insert into effect (key) values ($1)', [key])
      response
        .status(201)
        .location(`/${store.effectId(request, 'mail')}`)
        .json(SECRET_BODY)
    },
  })
  onTestFinished(async () => {
    await receiver.close()
    store.close()
    await pool.end()
  })
  return { ...receiver, port: receiver.port, store }
}

const lastResult = async (): Promise<string> => {
  const [row] = await ledger.query<{ result: Buffer }>(
    'select result from service_auth.idempotency order by expires_at desc limit 1',
  )
  return row?.result.toString('latin1') ?? ''
}

it('the row holds nothing that can be read, and a replay opens it', async () => {
  const receiver = await openEncrypted({ old: OLD }, 'old')
  const key = newKey()
  const first = await call(receiver.port, { key })
  expect(first).toMatchObject({ status: 201 })
  const kept = await lastResult()
  expect(kept).not.toContain(SECRET_BODY.iban)
  expect(kept.split('.')).toHaveLength(5)
  const replay = await call(receiver.port, { key })
  expect(replay).toMatchObject({ status: 201, body: first.body })
  expect(replay.headers['location']).toEqual(first.headers['location'])
  expect(replay.headers['idempotent-replayed']).toEqual(['true'])
  expect(await ledger.effects(key)).toBe(1)
})

it('another key: a roll-over reads, who has it not is told outcome-unknown', async () => {
  const events = hearIdempotency()
  const [key, both] = [newKey(), { old: OLD, new: NEW }]
  const before = await openEncrypted({ old: OLD }, 'old')
  await call(before.port, { key })
  const rolled = await openEncrypted(both, 'new')
  expect(await call(rolled.port, { key })).toMatchObject({ status: 201 })
  const without = await openEncrypted({ new: NEW }, 'new')
  expect(await call(without.port, { key })).toMatchObject({
    status: 409,
    problem: 'outcome-unknown',
  })
  expect(events.at(-1)).toMatchObject({ reason: 'outcome_unknown', found: 'unreadable' })
  expect([rolled.handled, without.handled]).toEqual([0, 0])
  expect(await ledger.effects(key)).toBe(1)

  // A record that is put under another key does not open there.
  const otherKey = newKey()
  await call(before.port, { key: otherKey })
  const moved = await lastResult()
  await ledger.query('update service_auth.idempotency set result = $1', [Buffer.from(moved)])
  expect(await call(before.port, { key })).toMatchObject({ status: 409 })
  expect(await call(before.port, { key: otherKey })).toMatchObject({ status: 201 })
})

it('the rest of the store works, and has its types', async () => {
  const { store } = await openEncrypted({ old: OLD }, 'old')
  expect(await store.check()).toEqual([])
  expect(await store.sweep()).toBe(0)
  expect(await store.consume(randomUUID(), 60_000)).toBe(true)
  expectTypeOf(store.transactionOf).toEqualTypeOf<PostgresStore<PoolClient>['transactionOf']>()
  expectTypeOf(store.keepWrites).toEqualTypeOf<PostgresStore<PoolClient>['keepWrites']>()
  expectTypeOf(store.effectId).toEqualTypeOf<PostgresStore<PoolClient>['effectId']>()
  expectTypeOf(store.run).toEqualTypeOf<PostgresStore<PoolClient>['run']>()
  expect('reserve' in store).toBe(false)
})
