import { describe, expect, it } from 'vitest'
import { nameOf } from '../../faults/postgres/stage.js'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { ADAPTERS, CREATE_PAYMENT } from './adapters/libraries.js'
import { effectOf, openOnAdapter } from './open-on-adapter.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)
await ledger.query(CREATE_PAYMENT)

const LATE = "insert into effect (key) values ('late')"

describe.each(ADAPTERS)('$name', (adapter) => {
  it('a write that is issued just before the answer, and not awaited, is part of the run', async () => {
    const receiver = await openOnAdapter(adapter, {
      url: ledger.url,
      max: 1,
      handler: (store, opened) => (request, response) => {
        const tx = store.transactionOf(request)
        const write = async (): Promise<void> => {
          await opened.execute(tx, effectOf(request))
        }
        void opened.execute(tx, effectOf(request))
        void write()
        response.status(201).json({})
      },
    })
    for (let time = 0; time < 3; time++) {
      const key = newKey()
      expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
      expect(await ledger.effects(nameOf(key))).toBe(2)
    }
  })

  it('use after the answer is told, once a run', async () => {
    const events = hearIdempotency()
    const failures: Promise<unknown>[] = []
    const receiver = await openOnAdapter(adapter, {
      url: ledger.url,
      max: 1,
      handler: (store, opened) => async (request, response) => {
        const tx = store.transactionOf(request)
        await opened.execute(tx, effectOf(request))
        response.status(201).json({})
        const uses = [opened.execute, opened.execute, opened.insert]
        for (const use of uses) {
          const late = async (): Promise<unknown> => use(tx, LATE)
          failures.push(late().catch((error: unknown) => error))
        }
      },
    })
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 201 })
    for (const failure of await Promise.all(failures)) {
      expect(failure).toMatchObject({ name: 'TransactionEndedError' })
    }
    const late = events.filter(({ reason }) => reason === 'transaction_used_late')
    expect(late).toMatchObject([
      {
        outcome: 'accepted',
        caller: 'billing',
        route: 'POST /orders/:id',
        record: events[0]?.record,
        fence: expect.any(Number),
      },
    ])
    expect(await ledger.effects('late')).toBe(0)
    expect(await ledger.query('select from payment')).toEqual([])
  })
})
