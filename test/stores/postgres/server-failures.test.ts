import type { RequestHandler } from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import { nameOf } from '../../faults/postgres/stage.js'
import { startTcpProxy } from '../../support/network/tcp-proxy.js'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { startPostgres } from '../../support/postgres/postgres.js'
import { postgresAddress } from '../../support/postgres/postgres-address.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { succeeds, until } from '../../support/until.js'
import { ADAPTERS, type OpenAdapter, PG } from './adapters/libraries.js'
import { effectOf, openOnAdapter } from './open-on-adapter.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const MAX = 3

type Request = Parameters<RequestHandler>[0]
type Work = (opened: OpenAdapter, tx: unknown, request: Request) => Promise<unknown>

const failWith = (sqlState: string): string =>
  `do $$ begin raise exception 'made' using errcode = '${sqlState}'; end $$`
const TERMINATE = 'select pg_terminate_backend(pg_backend_pid())::text'

const execute =
  (text: string): Work =>
  (opened, tx) =>
    opened.execute(tx, text)

const FAILURES: readonly (readonly [string, Work, string | undefined])[] = [
  ['53100', execute(failWith('53100')), '53100'],
  ['57P05', execute(failWith('57P05')), '57P05'],
  [
    '25006',
    async (opened, tx, request) => {
      await opened.execute(tx, 'set transaction read only')
      await opened.execute(tx, effectOf(request))
    },
    '25006',
  ],
  ['a lost backend', execute(TERMINATE), undefined],
]

type Handling = readonly [string, status: number | undefined]
const COMMITS: Handling = ['swallowed: 201', 201]
const HANDLINGS: readonly Handling[] = [
  ['passed on', undefined],
  COMMITS,
  ['swallowed: 409', 409],
  ['swallowed: 500', 500],
]

describe.each(ADAPTERS)('$name', (adapter) => {
  // The handler's own ways do not depend on the library.
  const handlings = adapter === PG ? HANDLINGS : [COMMITS]

  describe.each(FAILURES)("a handler's own statement fails with %s", (_what, work, sqlState) => {
    it.each(handlings)('%s', async (_how, status) => {
      const events = hearIdempotency()
      let isFirst = true
      const receiver = await openOnAdapter(adapter, {
        url: ledger.url,
        max: 2,
        handler: (store, opened) => async (request, response, next) => {
          const tx = store.transactionOf(request)
          try {
            await opened.execute(tx, effectOf(request))
            const fails = isFirst
            isFirst = false
            if (fails) await work(opened, tx, request)
          } catch (error) {
            if (status === undefined) next(error)
            else response.status(status).json({})
            return
          }
          response.status(201).json({})
        },
      })
      const key = newKey()
      const answer = await call(receiver.port, { key })
      expect(answer.status).toBe(503)
      expect(answer.headers['retry-after']).toEqual(['5'])
      expect(events.at(-1)).toMatchObject({ outcome: 'undecided', reason: 'store_unavailable' })
      if (sqlState) expect(events.at(-1)).toMatchObject({ sqlState })
      // Express's own error handler has it.
      expect(receiver.errors).toHaveLength(status === undefined ? 1 : 0)
      expect(await ledger.effects(nameOf(key))).toBe(0)
      await expect.poll(async () => (await call(receiver.port, { key })).status).toBe(201)
      expect(await ledger.effects(nameOf(key))).toBe(1)
    })
  })

  const statuses = adapter === PG ? [201, 409, 500] : [201]
  it.each(statuses)('what a savepoint undoes stays its own affair: %i', async (status) => {
    const receiver = await openOnAdapter(adapter, {
      url: ledger.url,
      max: 1,
      handler: (store, opened) => async (request, response) => {
        const tx = store.transactionOf(request)
        await opened.execute(tx, effectOf(request))
        for (const text of [
          failWith('53200'),
          "set local statement_timeout = '20ms'; select pg_sleep(5)::text",
        ]) {
          await opened.execute(tx, 'savepoint one')
          await expect(Promise.resolve(opened.execute(tx, text))).rejects.toThrow()
          await opened.execute(tx, 'rollback to savepoint one')
        }
        response.status(status).json({})
      },
    })
    const key = newKey()
    expect(await call(receiver.port, { key })).toMatchObject({ status })
    expect(await ledger.effects(nameOf(key))).toBe(status === 201 ? 1 : 0)
  })

  it('a statement_timeout that is passed on is an error of the app', async () => {
    const receiver = await openOnAdapter(adapter, {
      url: ledger.url,
      max: 1,
      handler: (store, opened) => async (request, response) => {
        const tx = store.transactionOf(request)
        await opened.execute(tx, "set local statement_timeout = '20ms'")
        await opened.execute(tx, 'select pg_sleep(5)::text')
        response.status(201).json({})
      },
    })
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 500 })
  })
})

const standby = await startPostgres({ standbyOf: postgres })

describe.each(ADAPTERS)('$name, connections that lead to a read-only server', (adapter) => {
  const handler: Parameters<typeof openOnAdapter>[1]['handler'] =
    (store, opened) => async (request, response) => {
      await opened.execute(store.transactionOf(request), effectOf(request))
      response.status(201).json({})
    }

  async function expectFewFailures(port: number, begin: () => Promise<unknown>): Promise<void> {
    // As many connections as the pool takes, all of them stale.
    await begin()
    const statuses: number[] = []
    const keys = Array.from({ length: MAX + 2 }, newKey)
    for (const key of keys) statuses.push((await call(port, { key })).status)
    expect(statuses.filter((status) => status !== 201 && status !== 503)).toEqual([])
    expect(statuses.filter((status) => status === 503).length).toBeLessThanOrEqual(MAX)
    expect(statuses.slice(MAX)).toEqual([201, 201])
    for (const [at, key] of keys.entries()) {
      expect(await ledger.effects(nameOf(key))).toBe(statuses[at] === 201 ? 1 : 0)
      expect(await call(port, { key })).toMatchObject({ status: 201 })
      expect(await ledger.effects(nameOf(key))).toBe(1)
    }
  }

  it('a standby', async () => {
    // As a name in DNS, or a load balancer.
    const target = { host: standby.host, port: standby.port }
    const proxy = await startTcpProxy(target)
    onTestFinished(() => proxy.close())
    await until('the standby has the database', () =>
      succeeds(standby.query('select 1 from service_auth.idempotency', [], ledger.name)),
    )
    const receiver = await openOnAdapter(adapter, {
      url: postgresAddress(proxy.port).urlFor(ledger.name),
      max: MAX,
      handler,
    })
    await expectFewFailures(receiver.port, async () => {
      const all = await Promise.all(
        Array.from({ length: MAX }, () => call(receiver.port, { key: newKey() })),
      )
      expect(all.map(({ status }) => status)).toEqual([503, 503, 503])
      target.port = postgres.port
    })
  })

  it('a server that was made read-only: writes and single use', async () => {
    const readOnly = (value: string) =>
      postgres.query(`alter database ${ledger.name} set default_transaction_read_only = ${value}`)
    await readOnly('on')
    try {
      const receiver = await openOnAdapter(adapter, { url: ledger.url, max: MAX, handler })
      const write = () => call(receiver.port, { key: newKey() })
      const use = () => receiver.store.consume(newKey(), 60_000)
      expect(await Promise.all([write(), write(), write()])).toMatchObject(
        Array.from({ length: 3 }, () => ({ status: 503 })),
      )
      for (let time = 0; time < MAX; time++) await expect(use()).rejects.toThrow()
      await Promise.allSettled(Array.from({ length: MAX }, use))
      await expectFewFailures(receiver.port, () => readOnly('off'))
      await readOnly('on')
      await Promise.allSettled(Array.from({ length: MAX }, use))
      await readOnly('off')
      const uses: string[] = []
      for (let time = 0; time < MAX + 2; time++) {
        uses.push(await use().then(String, () => 'failed'))
      }
      expect(uses.slice(MAX)).toEqual(['true', 'true'])
    } finally {
      await readOnly('off')
    }
  })
})
