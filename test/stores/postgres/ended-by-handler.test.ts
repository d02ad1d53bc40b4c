import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { nameOf } from '../../faults/postgres/stage.js'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { ADAPTERS, PG } from './adapters/libraries.js'
import { effectOf, openOnAdapter } from './open-on-adapter.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

/** A text, the status of the answer, how often the effect is there, and whether a retry gets a replay. */
type Ending = readonly [text: string, status: number, effects: number, replayed: string | undefined]

const ON_EACH_LIBRARY: readonly Ending[] = [
  ['select 1; commit', 201, 1, 'true'],
  ['select 1; rollback', 201, 0, 'true'],
  ['select 1; commit and chain', 201, 1, 'true'],
  ['select 1; commit', 500, 1, undefined],
]
const ON_PG: readonly Ending[] = [
  ...ON_EACH_LIBRARY,
  ['select 1; commit; begin', 201, 1, 'true'],
  ['do $$ begin end $$; commit', 201, 1, 'true'],
  ['select 1; commit', 409, 1, 'true'],
  ['select 1; commit', 429, 1, undefined],
]

const OPEN_TRANSACTIONS =
  "select pid from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"

describe.each(ADAPTERS)(
  '$name, a handler that ends its transaction inside of a longer text',
  (adapter) => {
    it.each(adapter === PG ? ON_PG : ON_EACH_LIBRARY)(
      '%s, and answers %i',
      async (text, status, effects, replayed) => {
        const events = hearIdempotency()
        const receiver = await openOnAdapter(adapter, {
          url: ledger.url,
          max: 2,
          // As long as postgres.js may wait for a connection that it has lost.
          store: { acquireMs: 2000 },
          handler: (store, opened) => async (request, response) => {
            const tx = store.transactionOf(request)
            await opened.execute(tx, effectOf(request))
            await opened.execute(tx, text)
            response.status(status).json({})
          },
        })
        const key = newKey()
        expect(await call(receiver.port, { key })).toMatchObject({ status })
        const retry = await call(receiver.port, { key })
        expect(retry.status).toBe(replayed ? status : 409)
        if (!replayed) expect(retry.problem).toBe('result-not-stored')
        expect(retry.headers['idempotent-replayed']).toEqual(replayed && [replayed])
        expect(await ledger.effects(nameOf(key))).toBe(effects)
        expect(receiver.handled).toBe(1)
        expect(events[1]).toMatchObject({ reason: 'uncoupled', status })
        const other = newKey()
        expect(await call(receiver.port, { key: other })).toMatchObject({ status })
        expect(await ledger.effects(nameOf(other))).toBe(effects)
        // The connections are sound, and no transaction is left on those of pg.
        if (adapter === PG) expect(await ledger.query(OPEN_TRANSACTIONS)).toEqual([])
      },
    )

    it.each(adapter === PG ? [201, 409, 500] : [201])(
      'while another waits for the connection, and answers %i',
      async (status) => {
        const receiver = await openOnAdapter(adapter, {
          url: ledger.url,
          max: 1,
          handler: (store, opened) => async (request, response) => {
            const tx = store.transactionOf(request)
            await opened.execute(tx, effectOf(request))
            if (request.query['other']) {
              await delay(100)
              await opened.execute(tx, effectOf(request))
              response.status(201).json({})
              return
            }
            // The other one waits for this connection by now.
            await delay(100)
            await opened.execute(tx, 'select 1; commit')
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
        expect(await ledger.effects(nameOf(key))).toBe(1)
        expect([201, 500, 503]).toContain(other.status)
        expect(await ledger.effects(nameOf(otherKey))).toBe(other.status === 201 ? 2 : 0)
        const retry = await call(receiver.port, { key: otherKey, path: '/orders/1?other=1' })
        expect(retry.status).toBe(201)
        expect(await ledger.effects(nameOf(otherKey))).toBe(2)
      },
    )
  },
)
