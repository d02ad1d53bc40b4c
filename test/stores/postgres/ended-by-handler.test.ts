import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger, openCoupled, writeEffect } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const OPEN_TRANSACTIONS =
  "select pid from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"

/** A text, the status of the answer, how often the effect is there, and whether a retry gets a replay. */
it.each<[text: string, status: number, effects: number, isReplayed: boolean]>([
  ['select 1; commit', 201, 1, true],
  ['select 1; rollback', 201, 0, true],
  ['select 1; commit and chain', 201, 1, true],
  ['select 1; commit; begin', 201, 1, true],
  ['select 1; commit', 409, 1, true],
  ['select 1; commit', 500, 1, false],
])(
  'a handler that ends its transaction by %j, and answers %i',
  async (text, status, effects, isReplayed) => {
    const events = hearIdempotency()
    const receiver = await openCoupled({
      url: ledger.url,
      pool: { max: 2 },
      handler: (store) => async (request, response) => {
        await writeEffect(store, request)
        await store.transactionOf(request).query(text)
        response.status(status).json({})
      },
    })
    const key = newKey()
    expect(await call(receiver.port, { key })).toMatchObject({ status })
    const retry = await call(receiver.port, { key })
    expect(retry.status).toBe(isReplayed ? status : 409)
    if (!isReplayed) expect(retry.problem).toBe('result-not-stored')
    expect(retry.headers['idempotent-replayed']).toEqual(isReplayed ? ['true'] : undefined)
    expect(await ledger.effects(key)).toBe(effects)
    expect(receiver.handled).toBe(1)
    expect(events[1]).toMatchObject({ reason: 'uncoupled', status })
    // The connections are sound, and no transaction is left on them.
    const other = newKey()
    expect(await call(receiver.port, { key: other })).toMatchObject({ status })
    expect(await ledger.effects(other)).toBe(effects)
    expect(await ledger.query(OPEN_TRANSACTIONS)).toEqual([])
  },
)

it.each([201, 500])(
  'a handler that ends its transaction while another waits for the connection, and answers %i',
  async (status) => {
    const receiver = await openCoupled({
      url: ledger.url,
      pool: { max: 1 },
      handler: (store) => async (request, response) => {
        await writeEffect(store, request)
        if (request.query['other']) {
          await delay(100)
          await writeEffect(store, request)
          response.status(201).json({})
          return
        }
        // The other one waits for this connection by now.
        await delay(100)
        await store.transactionOf(request).query('select 1; commit')
        await delay(50)
        response.status(status).json({})
      },
    })
    const [key, otherKey] = [newKey(), newKey()]
    const ending = call(receiver.port, { key })
    await delay(30)
    const other = await call(receiver.port, { key: otherKey, path: '/orders/1?other=1' })
    expect(await ending).toMatchObject({ status })
    expect((await call(receiver.port, { key })).status).toBe(status === 500 ? 409 : status)
    expect(await ledger.effects(key)).toBe(1)
    expect([201, 500, 503]).toContain(other.status)
    expect(await ledger.effects(otherKey)).toBe(other.status === 201 ? 2 : 0)
    const retry = await call(receiver.port, { key: otherKey, path: '/orders/1?other=1' })
    expect(retry.status).toBe(201)
    expect(await ledger.effects(otherKey)).toBe(2)
  },
)
