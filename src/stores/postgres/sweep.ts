import { AsyncResource } from 'node:async_hooks'
import { announcePostgres } from '../../base/decision/store-event.js'
import { integerBetween, lazy, optionsObject, parseOptions } from '../../base/options.js'
import { onlyRow, textIn } from './runner.js'
import { integerLiteral, quotedSchema } from './sql/literals.js'
import { schemaLock } from './sql/statements.js'
import { sqlStateOf } from './sql-state.js'
import { query, type StoreContext } from './store-context.js'

/** Limits of one sweep. */
export interface SweepOptions {
  /** Rows per transaction, 1 to 50,000. Default: 5000. */
  readonly batch?: number | undefined
  /** Rows per table, 1 or more. Default: 100,000. */
  readonly limit?: number | undefined
}

const OPTIONS = lazy(() =>
  optionsObject({
    batch: integerBetween(1, 50_000).default(5000),
    limit: integerBetween(1, Number.MAX_SAFE_INTEGER).default(100_000),
  }),
)

const TABLES = ['idempotency', 'used_token']
/** A batch takes tens of ms. After this time the server is taken to be unresponsive. */
const BATCH_MS = 60_000

/**
 * Deletes expired rows, the oldest first, each batch in a separate transaction. Resolves to their
 * number, and to 0 while another sweep of the schema is running.
 *
 * @throws TypeError if an option is wrong; otherwise the client's error.
 */
export async function sweep<Tx>(
  store: StoreContext<Tx>,
  options: SweepOptions = {},
): Promise<number> {
  const { batch, limit } = parseOptions('sweep', OPTIONS, options)
  let deleted = 0
  for (const table of TABLES) {
    let [left, rows, swept] = [limit, 0, 0]
    while (swept === rows && left > 0) {
      rows = Math.min(batch, left)
      const statement = { text: deletion(store.schema, table, rows), values: [] }
      const answer = await query(store, statement, { statementMs: BATCH_MS })
      swept = Number(textIn(onlyRow(answer), 'swept'))
      left -= swept
    }
    deleted += limit - left
  }
  return deleted
}

/**
 * Tries the lock once, before it looks for the first row, and holds it until the statement ends. It does
 * not lock the rows first, because that needs the right to update them. It deletes them by `ctid`,
 * because by their ids the planner reads the whole table.
 */
function deletion(schema: string, table: string, rows: number): string {
  const name = `${quotedSchema(schema)}.${table}`
  const lock = integerLiteral(schemaLock('sweep', schema))
  return (
    `with gone as (delete from ${name} where ctid OPERATOR(pg_catalog.=) any (array(` +
    `select ctid from ${name} ` +
    'where expires_at OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() ' +
    `and (select pg_catalog.pg_try_advisory_xact_lock(${lock})) ` +
    `order by expires_at limit ${rows})) returning 1) ` +
    'select pg_catalog.count(*)::pg_catalog.text as swept from gone'
  )
}

/** The pause varies by up to a quarter, so that processes that start together sweep at different times. */
const JITTER = 0.25

/**
 * Sweeps repeatedly, the first time after one pause, until the function that it returns is called; a sweep in
 * progress then continues. The timer does not keep the process alive.
 */
export function sweepEvery(seconds: number, sweepOnce: () => Promise<number>): () => void {
  let isSweeping = false

  async function run(): Promise<void> {
    if (isSweeping) return
    isSweeping = true
    const startedAt = performance.now()
    try {
      const deleted = await sweepOnce()
      const durationMs = performance.now() - startedAt
      announcePostgres(() => ({ type: 'swept', deleted, durationMs }))
    } catch (error) {
      const sqlState = sqlStateOf(error)
      announcePostgres(() => ({
        type: 'sweep_failed',
        ...(sqlState !== undefined && { sqlState }),
      }))
    } finally {
      isSweeping = false
    }
  }

  const pauseMs = seconds * 1000 * (1 + JITTER * (2 * Math.random() - 1))
  // In a context of its own each time: a library may change that of the code that called it.
  const tick = (): void => void new AsyncResource('express-service-auth:sweep').runInAsyncScope(run)
  const timer = setInterval(tick, pauseMs).unref()
  return () => clearInterval(timer)
}
