import { setImmediate as nextImmediate } from 'node:timers/promises'
import type { Row, Statement, TransactionRunner } from '../runner.js'
import { isEndedByHandler } from '../sql/statements.js'
import { libraryRunner, type Open } from './library-runner.js'

/** `sql` of postgres.js 3.4; `T` is the object that `sql.begin` passes to its callback. */
export interface PostgresJsLike<T> {
  /** Runs `work` in a transaction. */
  begin<R>(work: (sql: T) => R | Promise<R>): Promise<unknown>
  /** Runs `work` in a transaction with options such as its isolation level. */
  begin<R>(options: string, work: (sql: T) => R | Promise<R>): Promise<unknown>
}

/** `command` is the tag of the server's answer. */
type Result = readonly Row[] & { readonly command: string }

interface TransactionLike {
  unsafe(
    text: string,
    values: readonly unknown[],
    options: { readonly prepare: boolean },
  ): PromiseLike<Result>
}

/**
 * Runs transactions on postgres.js 3.4 by `sql.begin`; `transactionOf` returns the object that this passes
 * to its callback. postgres.js keeps a connection whose reply never comes: give it the option `socket`.
 *
 * @throws TypeError if `sql` is not the result of `postgres()`.
 *
 * @example
 * ```ts
 * import { fromPostgresJs, postgresStore } from 'express-service-auth/postgres'
 * import postgres from 'postgres'
 *
 * const sql = postgres(process.env['DATABASE_URL'] ?? '', { fetch_types: false })
 * const store = postgresStore(fromPostgresJs(sql))
 * await store.check()
 * store.close()
 * await sql.end()
 * ```
 */
export function fromPostgresJs<T>(sql: PostgresJsLike<T>): TransactionRunner<T> {
  if (!isPostgresJs(sql)) {
    throw new TypeError('fromPostgresJs: expected what postgres() returns')
  }
  /** Transactions whose connection is lost: the library would fail outside of every promise. */
  const lost = new WeakSet<object>()

  const open =
    (options: string): Open<T> =>
    (use) =>
      new Promise((resolve, reject) => {
        let tx: T | undefined
        let settle = reject
        const work = async (begun: T): Promise<void> => {
          tx = begun
          try {
            const result = await use(begun)
            if (lost.has(begun as object)) await never
            await commit(begun)
            // Also if the library then fails to end the empty transaction that `commit` has left.
            settle = () => resolve(result)
          } catch (error) {
            if (isOver(error)) {
              reject(error instanceof Refused ? error.cause : error)
              await never
            }
            await unlessLost(begun)
            throw error
          }
        }
        const failed = (error: unknown): void => {
          if (tx !== undefined) lost.add(tx as object)
          settle(error)
        }
        const end = (): void => settle(undefined)
        sql.begin(options, work).then(end, (error: unknown) => {
          // The library rejects the first transaction of a connection with the error that ended the one before it.
          if (tx === undefined && isFatal(error)) sql.begin(options, work).then(end, failed)
          else failed(error)
        })
      })

  /** Waits until a lost connection shows. If it is lost, never settles: the library must not end the transaction on it. */
  async function unlessLost(tx: T): Promise<void> {
    await nextImmediate()
    await nextImmediate()
    if (lost.has(tx as object)) await never
  }

  async function query(tx: T, { text, values }: Statement): Promise<readonly Row[]> {
    if (lost.has(tx as object)) throw new Error('The connection of postgres.js was lost')
    return [...(await unsafe(tx, text, values))]
  }

  return libraryRunner<T>({
    transaction: ({ isolation }) => open(isolation ? `isolation level ${isolation}` : ''),
    query,
    // No `connection`: outside a transaction the library does not distinguish a queued statement from a sent one.
  })
}

/**
 * The library sends a text without values at once. One with values takes two trips, unless it is prepared, which it is
 * on a connection from the second time on, if the user's options allow that.
 */
const unsafe = (tx: unknown, text: string, values: readonly unknown[]): PromiseLike<Result> =>
  (tx as TransactionLike).unsafe(text, values, { prepare: values.length > 0 })

/** A COMMIT that the server refused. */
class Refused extends Error {}

/**
 * Commits, and leaves the library an empty transaction to end. Its own `commit` is a prepared statement, which the
 * connection that pgbouncer assigns may not know: the library then takes the rollback for a success.
 */
async function commit(tx: unknown): Promise<void> {
  let command: string
  try {
    ;({ command } = await unsafe(tx, 'commit and chain', []))
  } catch (error) {
    throw Object(error).severity === 'ERROR' ? new Refused('refused', { cause: error }) : error
  }
  if (command !== 'COMMIT') throw new Error(`Postgres answered COMMIT with ${command}`)
}

/**
 * Whether the transaction is over, so that the library has given its connection to another request: it must not send
 * that request a `rollback`.
 */
const isOver = (error: unknown): boolean =>
  error instanceof Refused || isEndedByHandler(error) || isFatal(error)

const isFatal = (error: unknown): boolean => Object(error).severity === 'FATAL'

/** The objects from `begin` and `reserve` have no `begin`. */
function isPostgresJs(sql: unknown): boolean {
  return typeof sql === 'function' && typeof Object(sql).begin === 'function'
}

const never = new Promise<never>(() => {})
