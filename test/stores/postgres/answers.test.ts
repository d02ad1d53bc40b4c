import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { startPgbouncer } from '../../support/postgres/pgbouncer.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import {
  type CoupledOptions,
  createLedger,
  type Ledger,
  openCoupled,
  writeEffect,
} from '../../support/receiver/coupled-receiver.js'
import { EXPRESS_MAJORS, type ExpressMajor } from '../../support/receiver/express-majors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'

const [postgres15, postgres18] = await Promise.all([sharedPostgres(15), sharedPostgres(18)])
const pgbouncer = await startPgbouncer(postgres15, { poolMode: 'transaction' })
afterAll(() => pgbouncer.stop())

const [EXPRESS_4, EXPRESS_5] = EXPRESS_MAJORS as [ExpressMajor, ExpressMajor]
const PLACES = [
  { place: 'Postgres 15', postgres: postgres15, address: postgres15, ...EXPRESS_4 },
  { place: 'Postgres 18', postgres: postgres18, address: postgres18, ...EXPRESS_5 },
  { place: 'pgbouncer', postgres: postgres15, address: pgbouncer, ...EXPRESS_5 },
]

describe.each(PLACES)('what becomes of a write, $place, $major', (given) => {
  const { express, postgres, address } = given
  let ledger: Ledger
  beforeAll(async () => {
    ledger = await createLedger(postgres)
  })
  afterAll(() => ledger.drop())

  const open = (handler: CoupledOptions['handler'], more: Partial<CoupledOptions> = {}) =>
    openCoupled({ url: address.urlFor(ledger.name), express, handler, ...more })

  it('a success commits with its record, and a retry gets it again', async () => {
    const events = hearIdempotency()
    const receiver = await open((store) => async (request, response) => {
      await writeEffect(store, request)
      response.status(201).location('/orders/1').json({ order: 1 })
    })
    const key = newKey()
    const first = await call(receiver.port, { key, body: '{"a":1}' })
    const second = await call(receiver.port, { key, body: '{"a":1}' })
    expect(first).toMatchObject({ status: 201, headers: { location: ['/orders/1'] } })
    expect(second).toMatchObject({ status: 201, headers: { location: ['/orders/1'] } })
    expect(second.headers['idempotent-replayed']).toEqual(['true'])
    expect(second.body).toEqual(first.body)
    expect(await ledger.effects(key)).toBe(1)
    expect(events.map(({ reason }) => reason)).toEqual(['reserved', 'result_kept', 'replayed'])
    const other = await call(receiver.port, { key, body: '{"a":2}' })
    expect(other.problem).toBe('idempotency-key-reused')
  })

  it('a refusal rolls back and is kept; after keepWrites it commits', async () => {
    const events = hearIdempotency()
    let keeps = false
    const receiver = await open((store) => async (request, response) => {
      await writeEffect(store, request)
      if (keeps) store.keepWrites(request)
      response.status(422).json({ error: 'no' })
    })
    const [key, keptKey] = [newKey(), newKey()]
    expect(await call(receiver.port, { key })).toMatchObject({ status: 422 })
    expect(await ledger.effects(key)).toBe(0)
    expect((await call(receiver.port, { key })).headers['idempotent-replayed']).toEqual(['true'])
    keeps = true
    expect(await call(receiver.port, { key: keptKey })).toMatchObject({ status: 422 })
    expect(await ledger.effects(keptKey)).toBe(1)
    expect(events.map(({ reason }) => reason)).toEqual([
      'reserved',
      'refusal_kept',
      'replayed',
      'reserved',
      'result_kept',
    ])
  })

  it('release() rolls back', async () => {
    const receiver = await open((store) => async (request, response) => {
      await writeEffect(store, request)
      request.idempotency?.release()
      response.sendStatus(201)
    })
    const key = newKey()
    expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
    expect(await ledger.effects(key)).toBe(0)
  })

  it('a deferred constraint is next(error), and nothing of the answer is sent', async () => {
    await ledger.query('create table once (n int unique deferrable initially deferred)')
    await ledger.query('insert into once values (1)')
    const receiver = await open((store) => async (request, response) => {
      await store.transactionOf(request).query('insert into once values (1)')
      response.status(201).set('X-Order', '1').json({ order: 1 })
    })
    const answer = await call(receiver.port, { key: newKey() })
    expect(answer.status).toBe(500)
    expect(answer.headers['x-order']).toBeUndefined()
    expect(answer.body.toString()).toContain('the database has refused to commit')
  })
})
