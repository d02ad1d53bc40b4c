import { noAnswer, noConnection, ROLLBACK_MS, within } from '../deadline.js'
import type { Row, Statement, TransactionLimits, TransactionRunner } from '../runner.js'
import { noteKeepsSilentConnections } from '../silent-connections.js'
import { fromPg } from './pg.js'
import { isPgPool, outliveClientErrors, type PgPoolLike } from './pg-pool.js'
import { dropIfReadOnly } from './read-only.js'

/**
 * A database of drizzle 0.45 on a pool of node-postgres; `T` is the object that `transaction` passes to its callback.
 */
export interface DrizzleLike<T> {
  /** The pool of the database. */
  readonly $client: PgPoolLike<unknown>
  /** Runs `work` in a transaction. */
  transaction<R>(
    work: (tx: T) => Promise<R>,
    config?: { isolationLevel?: 'read committed' | 'repeatable read' | 'serializable' },
  ): Promise<R>
}

/** drizzle's `sql`. */
export interface SqlTag {
  /** Creates a query from a template literal. */
  (strings: TemplateStringsArray, ...values: unknown[]): unknown
  /** Creates SQL from a text, without escaping. */
  raw(text: string): unknown
}

interface ResultLike {
  readonly rows: Row[]
}

interface TransactionLike {
  /** Resolves to a list if the text has several statements. */
  execute(query: unknown): Promise<ResultLike | ResultLike[]>
}

/** Whether the last statement proved that the transaction is not aborted. */
interface Proof {
  holds: boolean
}

/**
 * Runs transactions on drizzle 0.45 with node-postgres, by `db.transaction`; `transactionOf` returns the
 * object that this passes to its callback. `sql` is drizzle's own. The pool and its clients get a listener
 * for their `error` events, so that a lost connection does not crash the process. drizzle keeps a connection
 * whose reply never comes: give the pool the option `stream`.
 *
 * @throws TypeError if `db` is not on a pool, or `sql` is not drizzle's `sql`.
 */
export function fromDrizzle<T>(db: DrizzleLike<T>, sql: SqlTag): TransactionRunner<T> {
  if (!isPgPool(Object(db).$client) || typeof db.transaction !== 'function') {
    throw new TypeError(
      'fromDrizzle: expected a drizzle database on a Pool of pg, of drizzle-orm/node-postgres; one on postgres.js needs a second database on such a pool',
    )
  }
  if (typeof sql !== 'function' || typeof sql.raw !== 'function') {
    throw new TypeError("fromDrizzle: expected drizzle's sql")
  }
  outliveClientErrors(db.$client)
  const alone = fromPg(db.$client)
  const proofs = new WeakMap<object, Proof>()

  const execute = async (tx: T, query: unknown): Promise<ResultLike[]> => {
    const results = [await (tx as TransactionLike).execute(query)].flat()
    const proof = proofs.get(tx as object)
    if (proof) holdForNow(proof)
    return results
  }

  async function send(tx: T, statement: Statement): Promise<Row[]> {
    const [result] = await execute(tx, toQuery(sql, statement))
    return result?.rows ?? []
  }

  const runner: TransactionRunner<T> = {
    async transaction(work, limits) {
      const prove = async (tx: T): Promise<void> => {
        if (!proofs.get(tx as object)?.holds) await execute(tx, sql.raw('select 1'))
      }
      const proven = async (tx: T) => {
        proofs.set(tx as object, { holds: false })
        try {
          const result = await work(tx)
          // Fails if an error was swallowed; the library's `commit` would roll back silently.
          await prove(tx)
          return result
        } catch (error) {
          await dropIfReadOnly(error, (text) => execute(tx, sql.raw(text)))
          throw error
        }
      }
      return hold(db, proven, limits)
    },

    async query(tx, text, values, limits) {
      if (tx === undefined) return alone.query(undefined, text, values, limits)
      return send(tx, { text, values })
    },

    async batch(tx, statements) {
      if (statements.every(({ values }) => values.length === 0)) {
        const text = statements.map((each) => each.text).join(';\n')
        const results = await execute(tx, sql.raw(text))
        return results.map(({ rows }) => rows)
      }
      const rows: Row[][] = []
      for (const statement of statements) rows.push(await send(tx, statement))
      return rows
    },
  }
  if (db.$client.options?.stream !== undefined) return runner
  return noteKeepsSilentConnections(runner, 'the option stream of the Pool of pg')
}

/** The proof holds for one turn of the event loop; a statement of a handler takes longer. */
function holdForNow(proof: Proof): void {
  proof.holds = true
  setImmediate(() => {
    proof.holds = false
  })
}

/** drizzle's pool may wait without a limit: a transaction that begins too late is rolled back unused. */
async function hold<T, R>(
  db: DrizzleLike<T>,
  work: (tx: T) => Promise<R>,
  { acquireMs, transactionMs, isolation }: TransactionLimits,
): Promise<R> {
  let isOver = false
  let ended: Promise<R> | undefined
  let worked: Promise<unknown> = new Promise(() => {})
  const begun = new Promise<void>((resolve, reject) => {
    const config = isolation ? { isolationLevel: isolation } : undefined
    ended = db.transaction((tx) => {
      if (isOver) throw noConnection(acquireMs)
      resolve()
      const working = work(tx)
      worked = working
      return working
    }, config)
    ended.catch(reject)
  })
  const tooLate = (): Error => {
    isOver = true
    return noConnection(acquireMs)
  }
  await within(acquireMs, begun, { tooLate })
  try {
    await Promise.race([worked, ended])
    const committed = Promise.resolve(ended) as Promise<R>
    return await within(transactionMs, committed, { tooLate: () => noAnswer(transactionMs) })
  } catch (error) {
    // The rollback is in progress.
    const rolledBack = Promise.resolve(ended)
    await within(ROLLBACK_MS, rolledBack, { tooLate: () => noAnswer(ROLLBACK_MS) }).catch(() => {})
    throw error
  }
}

/** Converts the text to the template form of drizzle's tag, with the values in place of `$1`, `$2`, ... */
function toQuery(sql: SqlTag, { text, values }: Statement): unknown {
  if (values.length === 0) return sql.raw(text)
  const parts = text.split(/\$(\d+)/)
  const strings = parts.filter((_part, index) => index % 2 === 0)
  const places = parts.filter((_part, index) => index % 2 === 1)
  const given = places.map((place) => values[Number(place) - 1] ?? null)
  return sql(Object.assign(strings, { raw: strings }), ...given)
}
