import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'drizzle-orm'
import { CompiledQuery } from 'kysely'
import { describe, expect, it } from 'vitest'
import { nameOf } from '../../faults/postgres/stage.js'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { withResolvers } from '../../support/with-resolvers.js'
import { ADAPTERS, CREATE_PAYMENT } from './adapters/libraries.js'
import { effectOf, openOnAdapter } from './open-on-adapter.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)
await ledger.query(CREATE_PAYMENT)

const LATE = "insert into effect (key) values ('late')"

type Callable = (...values: unknown[]) => unknown
type Members = Record<string, Callable>

/** A function of each library that takes SQL, and that SQL. */
const SQL_FUNCTIONS: Readonly<Record<string, readonly [string, unknown]>> = {
  pg: ['query', LATE],
  'postgres.js': ['unsafe', LATE],
  drizzle: ['execute', sql.raw(LATE)],
  kysely: ['executeQuery', CompiledQuery.raw(LATE)],
  TypeORM: ['query', LATE],
  Prisma: ['$executeRawUnsafe', LATE],
}

/** Ways to a function of the handle. */
const WAYS: Readonly<Record<string, (tx: Members, name: string) => Callable | undefined>> = {
  'its name': (tx, name) => tx[name],
  'Reflect.get': (tx, name) => Reflect.get(tx, name) as Callable,
}

describe.each(ADAPTERS)('$name', (adapter) => {
  const [name, query] = SQL_FUNCTIONS[adapter.name] as readonly [string, unknown]

  it.each(Object.keys(WAYS))('a function by %s writes nothing after the answer', async (way) => {
    const uses: (() => Promise<unknown>)[] = []
    const { promise: owned, resolve: isOwned } = withResolvers()
    const { promise: released, resolve: letGo } = withResolvers()
    const receiver = await openOnAdapter(adapter, {
      url: ledger.url,
      max: 1,
      handler: (store, opened) => async (request, response) => {
        const tx = store.transactionOf(request) as Members
        await opened.execute(tx, effectOf(request))
        if (request.query['owner']) {
          isOwned()
          await released
        } else {
          const find = WAYS[way] as (typeof WAYS)[string]
          const before = find(tx, name)
          uses.push(async () => before && Reflect.apply(before, tx, [query]))
          uses.push(async () => find(tx, name)?.call(tx, query))
        }
        response.status(201).json({})
      },
    })
    const [key, ownerKey] = [newKey(), newKey()]
    expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
    const owning = call(receiver.port, { key: ownerKey, path: '/orders/1?owner=1' })
    await owned
    const ends = await Promise.all(
      uses.map((use) => Promise.race([use().catch((error: unknown) => error), delay(100)])),
    )
    expect(ends).toHaveLength(2)
    letGo()
    expect(await owning).toMatchObject({ status: 201 })
    expect(await ledger.effects(nameOf(ownerKey))).toBe(1)
    expect(await ledger.effects('late')).toBe(0)
  })

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
