import {
  type OpeningLimits,
  type Row,
  SENDING_FIRST,
  type Statement,
  type TransactionRunner,
} from '../runner.js'
import { READ_ONLY_SQL_TRANSACTION, sqlStateOf } from '../sql-state.js'
import { libraryRunner, type Open, type Opening } from './library-runner.js'

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
  on(event: 'acquire', listener: (client: ErrorEmitter) => void): unknown
}

/** @inline */
interface ErrorEmitter {
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** The parts of a client that the adapter uses. */
interface PgClientLike extends ErrorEmitter {
  query(text: string, values?: readonly unknown[]): Promise<PgResult>
  release(destroy?: boolean): void
}

interface PgResult {
  readonly command: string
  readonly rows: Row[]
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
  pool.on('error', ignore)
  const runner = libraryRunner<T>({
    transaction: (limits) => openClient(pool, limits),
    connection: openClient(pool),
    query: rowsOf,
  })
  SENDING_FIRST.add(runner)
  return runner
}

async function rowsOf<T>(tx: T, { text, values }: Statement): Promise<readonly Row[]> {
  // Without values pg sends one message in place of five.
  const { rows } = await clientOf(tx).query(text, values.length === 0 ? undefined : values)
  return rows
}

/**
 * Acquires a client of the pool, and begins a transaction on it if `limits` are given. Uses the callback form, so that
 * the client has a listener immediately: one chunk of bytes can contain both its readiness and the end of its
 * connection, and a promise continues only after both.
 */
const openClient =
  <T>(pool: PgPoolLike<T>, limits?: OpeningLimits): Open<T> =>
  (use, opening) =>
    new Promise((resolve, reject) => {
      pool.connect((error, tx) => {
        if (tx === undefined) reject(error)
        else useClient(tx, use, opening, limits).then(resolve, reject)
      })
    })

/** Destroys the client afterwards if it is lost, abandoned or in an unknown state. */
async function useClient<T, R>(
  tx: T,
  use: (tx: T) => Promise<R>,
  opening: Opening,
  limits: OpeningLimits | undefined,
): Promise<R> {
  const client = clientOf(tx)
  if (opening.isAbandoned) {
    client.release()
    throw new Error('The connection came too late')
  }
  let isReusable = true
  // After the client's `error` event the current query, or the next one, fails with this error too.
  const spoil = (): void => {
    isReusable = false
  }
  client.on('error', spoil)
  let release = (): void => {
    release = () => {}
    client.removeListener('error', spoil)
    client.release(!isReusable)
  }
  opening.destroy = () => {
    spoil()
    release()
  }
  try {
    if (limits === undefined) return await use(tx)
    await begin(client, limits)
    const result = await use(tx)
    // `commit` of a failed transaction does not fail: Postgres rolls back, and the command tag is `ROLLBACK`.
    const { command } = await client.query('commit')
    if (command !== 'COMMIT') throw new Error(`Postgres answered ${command} to a COMMIT.`)
    return result
  } catch (error) {
    // The server is a standby: the pool connects to another one.
    if (sqlStateOf(error) === READ_ONLY_SQL_TRANSACTION) spoil()
    if (limits !== undefined) await client.query('rollback').catch(spoil)
    throw error
  } finally {
    release()
  }
}

/** Begins a transaction. Its first statement is sent with the `begin`, which saves a round trip. */
async function begin(client: PgClientLike, { isolation, first }: OpeningLimits): Promise<void> {
  const text = isolation ? `begin isolation level ${isolation}` : 'begin'
  const result: unknown = await client.query(first ? `${text}; ${first.text}` : text)
  // For a text of several statements pg returns a list of their results.
  if (first) first.rows = (result as readonly [PgResult, PgResult])[1].rows
}

const clientOf = (tx: unknown): PgClientLike => tx as PgClientLike

export function isPgPool(pool: unknown): boolean {
  const { connect, on, totalCount } = Object(pool) as Record<string, unknown>
  const isPool = typeof connect === 'function' && typeof on === 'function'
  return isPool && typeof totalCount === 'number'
}

/** Handles the error of a client that is lost, which would crash the process. The pool removes that client itself. */
const ignore = (): void => {}

/** Adds the listener to a client in use, unless it has it, for a library that acquires clients without one. */
export function ignoreErrors(client: ErrorEmitter): void {
  client.removeListener('error', ignore)
  client.on('error', ignore)
}
