import { integerBetween, optionsObject, parseOptions } from '../../base/options.js'
import type { TransactionRunner } from './runner.js'
import { lockLiteral, quotedSchema } from './sql/literals.js'
import { onlyRow, textIn } from './sql/read-columns.js'
import { schemaLock } from './sql/record-ids.js'

/** How much one sweep deletes. */
export interface SweepOptions {
  /** Rows in one transaction, 1 to 50,000; by default 5000. */
  readonly batch?: number | undefined
  /** Rows of each table, 1 or more; by default 100,000. */
  readonly limit?: number | undefined
}

/** Where a sweep works. */
export interface SweptPlace {
  readonly runner: Pick<TransactionRunner<never>, 'query'>
  readonly schema: string
  /** The wait for a connection, in ms. */
  readonly acquireMs: number
}

const OPTIONS = optionsObject({
  batch: integerBetween(1, 50_000).default(5000),
  limit: integerBetween(1, Number.MAX_SAFE_INTEGER).default(100_000),
})

const TABLES = ['idempotency', 'used_token']
/** A batch takes some tens of ms; one that takes this long has been left alone by the server. */
const BATCH_MS = 60_000

/**
 * Deletes rows that have expired, the oldest first, each batch in a transaction of its own. Resolves to
 * how many; to 0 while another sweeps the schema.
 *
 * @throws TypeError when an option is wrong; else what the client rejects with.
 */
export async function sweep(place: SweptPlace, options: SweepOptions = {}): Promise<number> {
  const amount = parseOptions('sweep', OPTIONS, options)
  let deleted = 0
  for (const table of TABLES) deleted += await sweepTable(place, table, amount)
  return deleted
}

interface Amount {
  readonly batch: number
  readonly limit: number
}

async function sweepTable(
  { runner, schema, acquireMs }: SweptPlace,
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
 * The lock is tried once, before the first row is looked for; it is held to the end of the statement.
 * Rows are not locked first: that needs the right to overwrite them. They are found again by their place:
 * by their ids the planner reads the whole table.
 */
function deletion(schema: string, table: string, rows: number): string {
  const name = `${quotedSchema(schema)}.${table}`
  const lock = lockLiteral(schemaLock('sweep', schema))
  return (
    `with gone as (delete from ${name} where ctid OPERATOR(pg_catalog.=) any (array(` +
    `select ctid from ${name} ` +
    'where expires_at OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() ' +
    `and (select pg_catalog.pg_try_advisory_xact_lock(${lock})) ` +
    `order by expires_at limit ${rows})) returning 1) ` +
    'select pg_catalog.count(*)::pg_catalog.text as swept from gone'
  )
}
