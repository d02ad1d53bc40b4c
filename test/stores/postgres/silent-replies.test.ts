import { connect, Socket } from 'node:net'
import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { fromDrizzle, fromKysely, fromPostgresJs, fromPrisma } from 'express-service-auth/postgres'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { Pool } from 'pg'
import postgresJs from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ADAPTERS, type Adapter } from '../../faults/postgres/adapters.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { startPostgresProxy } from '../../support/postgres/postgres-proxy.js'
import { openPrisma } from '../../support/postgres/prisma.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { effectOf, openOnAdapter } from './open-on-adapter.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const MAX = 5
const LIMITS = { acquireMs: 1500, transactionMs: 1000, resolveMs: 500 }
/** Longer than any run, as the guide says. */
const SOCKET_MS = 4000
const HEALED_WITHIN_MS = 12_000

const stream = () => {
  const socket = new Socket()
  return socket.setTimeout(SOCKET_MS, () => socket.destroy())
}

const poolOf = (connectionString: string, max: number): Pool => {
  const pool = new Pool({ connectionString, max, stream })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

const insertInto = (id: string): string => `insert into payment (id) values ('${id}')`

/** The libraries with the setting that `check` names. */
const WITH_SETTING: readonly Adapter[] = [
  {
    name: 'kysely',
    async open(url, max) {
      const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: poolOf(url, max) }) })
      const execute = (tx: unknown, text: string) => sql.raw(text).execute(tx as typeof db)
      const insert = (tx: unknown, id: string) => execute(tx, insertInto(id))
      return { runner: fromKysely(db) as never, insert, execute, close: () => db.destroy() }
    },
  },
  {
    name: 'drizzle',
    async open(url, max) {
      const pool = poolOf(url, max)
      const db = drizzle(pool)
      const execute = async (tx: unknown, text: string) =>
        (tx as typeof db).execute(drizzleSql.raw(text))
      const insert = (tx: unknown, id: string) => execute(tx, insertInto(id))
      return {
        runner: fromDrizzle(db, drizzleSql) as never,
        insert,
        execute,
        close: () => pool.end(),
      }
    },
  },
  {
    name: 'postgres.js',
    async open(url, max) {
      const { hostname, port } = new URL(url)
      const options = {
        max,
        fetch_types: false,
        backoff: () => 0.05,
        onnotice: () => {},
        socket: () => {
          const socket = connect(Number(port), hostname)
          return socket.setTimeout(SOCKET_MS, () => socket.destroy())
        },
      }
      const db = postgresJs(url, options)
      const execute = async (tx: unknown, text: string) => (tx as typeof db).unsafe(text)
      const insert = (tx: unknown, id: string) => execute(tx, insertInto(id))
      return {
        runner: fromPostgresJs(db) as never,
        insert,
        execute,
        close: () => db.end({ timeout: 1 }),
      }
    },
  },
  {
    name: 'Prisma',
    async open(url, max) {
      const prisma = await openPrisma(url, max, { stream })
      const execute = async (tx: unknown, text: string) =>
        (tx as typeof prisma).$executeRawUnsafe(text)
      const insert = (tx: unknown, id: string) => execute(tx, insertInto(id))
      return {
        runner: fromPrisma(prisma) as never,
        insert,
        execute,
        close: () => prisma.$disconnect(),
      }
    },
  },
]

const WITHOUT_SETTING = ADAPTERS.filter(({ name }) => name === 'pg' || name === 'TypeORM')

/** When the replies stop: they are those of BEGIN, of the handler's statement, or of the record and COMMIT. */
const MOMENTS = ['before the run', 'before the write', 'after the write'] as const

/** drizzle itself loses a connection whose `begin` has failed, as docs/stores/postgres.md says. */
const momentsOf = ({ name }: Adapter) =>
  name === 'drizzle' ? MOMENTS.filter((moment) => moment !== 'before the run') : MOMENTS

describe.each([...WITHOUT_SETTING, ...WITH_SETTING])('$name', (adapter) => {
  it.each(momentsOf(adapter))(
    'gives up five connections whose replies never come: %s',
    async (moment) => {
      const proxy = await startPostgresProxy(postgres)
      onTestFinished(() => proxy.stop())
      let waiting: (() => void)[] = []
      /** Resolves when all handlers wait, after which nothing gets through. */
      const meet = (): Promise<void> =>
        new Promise((resolve) => {
          waiting.push(resolve)
          if (waiting.length < MAX) return
          if (isSilent) proxy.hold()
          for (const go of waiting.splice(0)) go()
        })
      let at: (typeof MOMENTS)[number] | undefined
      let isSilent = false
      const receiver = await openOnAdapter(adapter, {
        url: proxy.urlFor(ledger.name),
        max: MAX,
        store: LIMITS,
        handler:
          (store, { execute }) =>
          async (request, response) => {
            const tx = store.transactionOf(request)
            if (at === 'before the write') await meet()
            await execute(tx, effectOf(request))
            if (at === 'after the write') await meet()
            response.status(201).json({})
          },
      })
      const five = () =>
        Promise.all(Array.from({ length: MAX }, () => call(receiver.port, { key: newKey() })))
      // The first of a library takes longer than others.
      await expect.poll(async () => (await call(receiver.port, { key: newKey() })).status).toBe(201)
      // Fills the pool.
      at = 'before the write'
      await five()
      waiting = []
      isSilent = true
      at = moment
      if (moment === 'before the run') proxy.hold()
      for (const { status } of await five()) expect(status).toBe(503)
      at = undefined
      // New connections get through.
      await expect
        .poll(async () => (await call(receiver.port, { key: newKey() })).status, {
          timeout: HEALED_WITHIN_MS,
        })
        .toBe(201)
    },
    40_000,
  )
})

const stays = (setting: string) =>
  expect.stringContaining(`stays in the pool for good, unless ${setting}`)

it.each([
  ['pg', ADAPTERS, undefined],
  ['TypeORM', ADAPTERS, undefined],
  ['drizzle', ADAPTERS, 'the option stream of the Pool of pg'],
  ['drizzle', WITH_SETTING, undefined],
  ['postgres.js', ADAPTERS, 'the option socket of postgres()'],
  ['postgres.js', WITH_SETTING, undefined],
  ['kysely', ADAPTERS, 'the option stream of the Pool of pg'],
  ['Prisma', ADAPTERS, 'the option stream of PrismaPg'],
] as const)('check() on %s', async (name, adapters, setting) => {
  const adapter = (adapters as readonly Adapter[]).find((each) => each.name === name) as Adapter
  const { store } = await openOnAdapter(adapter, {
    url: ledger.url,
    max: 2,
    handler: () => (_request, response) => void response.end(),
  })
  expect(await store.check()).toEqual(setting === undefined ? [] : [stays(setting)])
})
