import type { TransactionRunner } from '../runner.js'
import { libraryRunner, type Open, queryOn } from './library-runner.js'

/** A pool of pg 8.23 or later; `T` is its client. */
export interface PgPoolLike<T> {
  /** Distinguishes a pool from a client. */
  readonly totalCount: number
  /** Acquires a client. */
  connect(): Promise<T>
  connect(
    callback: (
      error: Error | undefined,
      client: T | undefined,
      done: (release?: unknown) => void,
    ) => void,
  ): void
  /** Emitted when an idle client fails. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Emitted when a client is acquired. */
  on(event: 'acquire', listener: (client: unknown) => void): unknown
}

/** The parts of a client that the adapter uses. */
interface PgClientLike {
  query(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly command: string; readonly rows: Record<string, unknown>[] }>
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/**
 * Runs transactions on a pool of pg (node-postgres) 8.23 or later; `transactionOf` returns the pool's
 * client. The pool gets one listener for its `error` event, so that an idle client that loses its
 * connection does not crash the process.
 *
 * @throws TypeError if `pool` is not a pool.
 *
 * @example
 * ```ts
 * import { fromPg, postgresStore } from 'express-service-auth/postgres'
 * import { Pool } from 'pg'
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
 * const store = postgresStore(fromPg(pool))
 * await store.check()
 * store.close()
 * await pool.end()
 * ```
 */
export function fromPg<T>(pool: PgPoolLike<T>): TransactionRunner<T> {
  if (!isPgPool(pool))
    throw new TypeError('fromPg: expected a Pool of pg, such as new Pool({ connectionString })')
  ignoreIdleClientErrors(pool)
  return libraryRunner<T>({
    transaction:
      ({ isolation }) =>
      (use, opening) => {
        const begin = isolation ? `begin isolation level ${isolation}` : 'begin'
        return openClient(pool)((tx) => inTransaction(tx, begin, use), opening)
      },
    query: (tx, { text, values }) => rowsOf(tx, text, values),
    queryAlone: (single) =>
      queryOn(openClient(pool), (tx, { text, values }) => rowsOf(tx, text, values), single),
  })
}

async function inTransaction<T, R>(tx: T, begin: string, work: (tx: T) => Promise<R>): Promise<R> {
  const client = clientOf(tx)
  try {
    await client.query(begin)
    const result = await work(tx)
    // `commit` of a failed transaction does not fail: Postgres rolls back, and the command tag is `ROLLBACK`.
    const { command } = await client.query('commit')
    if (command !== 'COMMIT') throw new Error(`Postgres answered ${command} to a COMMIT.`)
    return result
  } catch (error) {
    await client.query('rollback').catch(() => {
      throw new NotReusable(error)
    })
    throw error
  }
}

/** A client whose state is unknown. */
class NotReusable extends Error {
  readonly error: unknown

  constructor(error: unknown) {
    super('The client of pg could not be rolled back')
    this.error = error
  }
}

async function rowsOf(tx: unknown, text: string, values: readonly unknown[]) {
  // Without values pg sends one message in place of five.
  const { rows } = await clientOf(tx).query(text, values.length === 0 ? undefined : values)
  return rows
}

/** Acquires a client of the pool, and destroys it if it is lost, abandoned or in an unknown state. */
const openClient =
  <T>(pool: PgPoolLike<T>): Open<T> =>
  async (use, opening) => {
    const { tx, release } = await acquire(pool)
    if (opening.isAbandoned) {
      release(true)
      throw new Error('The connection came too late')
    }
    opening.destroy = () => release(false)
    try {
      const result = await use(tx)
      release(true)
      return result
    } catch (error) {
      const isReusable = !(error instanceof NotReusable)
      release(isReusable)
      throw isReusable ? error : error.error
    }
  }

interface AcquiredClient<T> {
  readonly tx: T
  /** Returns the client to the pool, once; destroys it if its state is unknown. */
  release(isReusable: boolean): void
}

/**
 * Uses the callback form, so that the client has a listener immediately: one chunk of bytes can
 * contain both its readiness and the end of its connection, and a promise continues only after both.
 */
function acquire<T>(pool: PgPoolLike<T>): Promise<AcquiredClient<T>> {
  return new Promise((resolve, reject) => {
    pool.connect((error, tx) => {
      if (tx === undefined) reject(error)
      else resolve(acquiredClient(tx))
    })
  })
}

function acquiredClient<T>(tx: T): AcquiredClient<T> {
  const client = clientOf(tx)
  let isLost = false
  let isReleased = false
  // The current query, or the next one, fails with this error too.
  const lost = (): void => {
    isLost = true
  }
  client.on('error', lost)
  return {
    tx,
    release(isReusable) {
      if (isReleased) return
      isReleased = true
      client.removeListener('error', lost)
      client.release(isLost || !isReusable)
    },
  }
}

const clientOf = (tx: unknown): PgClientLike => tx as PgClientLike

const POOLS_WITH_LISTENER = new WeakSet<object>()
const CLIENTS_WITH_LISTENER = new WeakSet<object>()

export function isPgPool(pool: unknown): boolean {
  const { connect, on, totalCount } = Object(pool) as Record<string, unknown>
  const isPool = typeof connect === 'function' && typeof on === 'function'
  return isPool && typeof totalCount === 'number'
}

/** An idle client's error would crash the process. The pool has already removed that client. */
function ignoreIdleClientErrors(pool: PgPoolLike<unknown>): void {
  if (POOLS_WITH_LISTENER.has(pool)) return
  POOLS_WITH_LISTENER.add(pool)
  pool.on('error', () => {})
}

/** Adds a listener to clients in use, for a library that acquires them without adding one. */
export function ignoreClientErrors(pool: PgPoolLike<unknown>): void {
  ignoreIdleClientErrors(pool)
  pool.on('acquire', (client) => {
    if (CLIENTS_WITH_LISTENER.has(client as object)) return
    CLIENTS_WITH_LISTENER.add(client as object)
    clientOf(client).on('error', () => {})
  })
}
