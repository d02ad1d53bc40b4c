import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Request } from 'express'
import type { PostgresStoreOptions } from '../../../src/stores/postgres/postgres-options.js'
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres/postgres-store.js'
import { migration } from '../../../src/stores/postgres/schema.js'
import { CREATE_PAYMENT, type OpenAdapter } from '../../stores/postgres/adapters/libraries.js'
import { type Pgbouncer, startPgbouncer } from '../../support/postgres/pgbouncer.js'
import { type PostgresServer, startPostgres } from '../../support/postgres/postgres.js'
import type { PostgresAddress } from '../../support/postgres/postgres-address.js'
import type { PostgresVersion } from '../../support/postgres/postgres-binary.js'
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres/postgres-proxy.js'
import type { Receiver } from '../../support/receiver/open-receiver.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import type { Cell, Route } from './matrix.js'

/** Short, so that whatever hangs is over soon; long enough for a busy machine. */
export const LIMITS = { acquireMs: 1000, transactionMs: 1000, resolveMs: 1000 }

/** Of a run that nothing holds up, however busy the machine is. */
export const PATIENT = { acquireMs: 10_000, transactionMs: 10_000 }

const CLOSING_MS = 500

/** Keys are secrets, and drivers tell of what they have sent. */
export const nameOf = (key: string): string =>
  createHash('sha256').update(key).digest('hex').slice(0, 32)

/** One Postgres, and pgbouncer before it. The proxy of a lane stands before either. */
export interface Stage {
  readonly postgres: PostgresServer
  /** Ids of what handlers have written under a key. */
  effects(key: string): Promise<string[]>
  addressOf(route: Route): Promise<PostgresAddress>
  close(): Promise<void>
}

export async function openStage(version: PostgresVersion): Promise<Stage> {
  const postgres = await startPostgres({ version })
  await postgres.query(migration())
  await postgres.query(CREATE_PAYMENT)
  let pgbouncer: Promise<Pgbouncer> | undefined
  return {
    postgres,
    async effects(key) {
      const rows = await postgres.query<{ id: string }>(
        "select id from payment where id like $1 || '/%'",
        [nameOf(key)],
      )
      return rows.map(({ id }) => id)
    },
    async addressOf(route) {
      if (route === 'directly') return postgres
      pgbouncer ??= startPgbouncer(postgres, { poolMode: 'transaction' })
      return pgbouncer
    },
    async close() {
      await (await pgbouncer)?.stop()
      await postgres.stop()
    },
  }
}

/** An application on a wire of its own. */
export interface Lane {
  readonly proxy: PostgresProxy
  readonly opened: OpenAdapter
  /** A store and a receiver, which know nothing of those before. */
  receive(given?: Receiving): Promise<LaneReceiver>
}

export interface LaneReceiver extends Receiver {
  readonly store: PostgresStore<unknown>
  /** The errors of what its handler itself has written. */
  readonly failures: readonly unknown[]
}

export interface Receiving {
  readonly store?: PostgresStoreOptions
  /** What a run of the handler does between its write and its answer, which is 201 with the id of the write. */
  afterWrite?(request: Request, tools: RunTools): unknown
}

export interface RunTools {
  /** Which run of this receiver it is, from 1. */
  readonly run: number
  /** Runs a statement in the transaction of the request. */
  execute(text: string): PromiseLike<unknown>
}

/**
 * Settings of postgres.js. A connection that breaks while the library asks for the types of its server
 * rejects a promise that nobody has, which ends the process: it does not ask.
 *
 * After some lost connections in a row it waits for up to 20 s before it connects again: here it does not.
 *
 * Behind a pooler a handler must not name its statements: another connection does not know them.
 */
export function urlOf({ adapter, route }: Cell, { url }: Pick<PostgresAddress, 'url'>): string {
  if (adapter.name !== 'postgres.js') return url
  const unnamed = route === 'directly' ? '' : '&prepare=false'
  return `${url}?fetch_types=false&backoff=0.05${unnamed}`
}

export interface LaneOptions {
  /** How many connections the application opens; by default 4. */
  readonly max?: number
}

/** Opens one, and closes it when `use` has settled. */
export async function onLane<R>(
  stage: Stage,
  cell: Cell,
  use: (lane: Lane) => Promise<R>,
  { max = 4 }: LaneOptions = {},
): Promise<R> {
  const proxy = await startPostgresProxy(await stage.addressOf(cell.route))
  const opened = await cell.adapter.open(urlOf(cell, proxy), max)
  const receivers: LaneReceiver[] = []

  async function receive({ store: options, afterWrite }: Receiving = {}) {
    const store = postgresStore(opened.runner, { ...LIMITS, sweepSeconds: false, ...options })
    const failures: unknown[] = []
    const write = async (request: Request): Promise<string> => {
      const id = `${nameOf(request.idempotency?.key ?? '')}/${randomUUID()}`
      try {
        await opened.insert(store.transactionOf(request), id)
      } catch (error) {
        failures.push(error)
        throw error
      }
      return id
    }
    let runs = 0
    const receiver = await openOrders({
      express: cell.express,
      store,
      async handler(request, response, next) {
        runs += 1
        const run = runs
        const execute = (text: string) => opened.execute(store.transactionOf(request), text)
        try {
          const effect = await write(request)
          await afterWrite?.(request, { run, execute })
          response.status(201).json({ effect })
        } catch (error) {
          // As Express 5 does by itself.
          next(error)
        }
      },
    })
    const made = Object.assign(receiver, { store, failures })
    receivers.push(made)
    return made
  }

  try {
    return await use({ proxy, opened, receive })
  } finally {
    await proxy.heal()
    await Promise.all(receivers.map((receiver) => receiver.close()))
    for (const { store } of receivers) store.close()
    // What waits for a reply that never comes would wait forever.
    proxy.cut()
    // drizzle 0.45 never gives a connection back on which its `begin` has failed, and its pool waits for it.
    await Promise.race([opened.close(), delay(CLOSING_MS, undefined, { ref: false })])
    await proxy.stop()
  }
}
