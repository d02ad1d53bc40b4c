import { AsyncResource } from 'node:async_hooks'
import { announcePostgres } from '../../base/decision/store-event.js'
import { integerBetween, lazy, optionsObject, parseOptions } from '../../base/options.js'
import { onlyRow, type TransactionRunner, textIn } from './runner.js'
import { integerLiteral, quotedSchema } from './sql/literals.js'
import { schemaLock } from './sql/record-ids.js'
import { sqlStateOf } from './sql-state.js'

/** Limits of one sweep. */
export interface SweepOptions {
  /** Rows per transaction, 1 to 50,000. Default: 5000. */
  readonly batch?: number | undefined
  /** Rows per table, 1 or more. Default: 100,000. */
  readonly limit?: number | undefined
}

interface SweepContext {
  readonly runner: Pick<TransactionRunner<never>, 'query'>
  readonly schema: string
  /** The maximum wait for a connection, in ms. */
  readonly acquireMs: number
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
export async function sweep(context: SweepContext, options: SweepOptions = {}): Promise<number> {
  const amount = parseOptions('sweep', OPTIONS, options)
  let deleted = 0
  for (const table of TABLES) deleted += await sweepTable(context, table, amount)
  return deleted
}

interface Amount {
  readonly batch: number
  readonly limit: number
}

async function sweepTable(
  { runner, schema, acquireMs }: SweepContext,
  table: string,
  { batch, limit }: Amount,
): Promise<number> {
  const limits = { acquireMs, statementMs: BATCH_MS }
  let deleted = 0
  while (deleted < limit) {
    const rows = Math.min(batch, limit - deleted)
    const answer = await runner.query(undefined, deletion(schema, table, rows), [], limits)
    const swept = Number(textIn(onlyRow(answer), 'swept'))
    deleted += swept
    if (swept < rows) break
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

export interface Sweeper {
  /** Stops sweeping; a sweep in progress continues. */
  close(): void
}

interface SweeperOptions {
  /** Resolves to the number of deleted rows. */
  sweep(): Promise<number>
  readonly everySeconds: number
}

/** The wait varies by up to a quarter, so that processes that start together sweep at different times. */
const JITTER = 0.25

/**
 * Sweeps repeatedly, the first time after one wait. The timer does not keep the process alive, and runs
 * in the async context of the caller.
 */
export function startSweeper({ sweep, everySeconds }: SweeperOptions): Sweeper {
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  async function sweepOnce(): Promise<void> {
    const startedAt = performance.now()
    try {
      const deleted = await sweep()
      announcePostgres(() => ({
        type: 'swept',
        deleted,
        durationMs: performance.now() - startedAt,
      }))
    } catch (error) {
      const sqlState = sqlStateOf(error)
      announcePostgres(() => ({
        type: 'sweep_failed',
        ...(sqlState !== undefined && { sqlState }),
      }))
    }
    wait()
  }

  // `sweep` may have changed the async context.
  const wait = AsyncResource.bind((): void => {
    if (isClosed) return
    const waitMs = everySeconds * 1000 * (1 + JITTER * (2 * Math.random() - 1))
    timer = setTimeout(() => void sweepOnce(), waitMs)
    timer.unref()
  }, 'express-service-auth:sweep')

  wait()
  return {
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
