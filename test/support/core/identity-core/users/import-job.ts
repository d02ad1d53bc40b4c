import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Database, Query } from './database.js'
import { isStorable } from './database-text.js'
import { BlamedFault, ChunkFault, DatabaseFault } from './import-fault.js'
import type { ImportRules } from './import-rules.js'
import { importUsers } from './import-users.js'
import type { ImportedUser, ReadContext } from './imported-user.js'
import { readUser } from './read-user.js'
import { countRows, deleteRows, type Row, rawUser } from './rows.js'

/** Faults of a run, for tests. */
export interface JobFaults {
  /** Called after the accounts of a chunk are committed and before its rows are deleted; may throw. */
  readonly beforeDelete?: (() => unknown) | undefined
  /** Fails each chunk as a whole, with this text. */
  readonly chunkFault?: string | undefined
}

export interface ImportJob {
  /** Runs now, or after the current run. */
  run(faults?: JobFaults): Promise<void>
  /** Ends after the current chunk. */
  close(): Promise<void>
}

export interface ImportJobOptions {
  readonly database: Database
  /** Returns the context for reading users: the current state of the core. */
  readonly contextFor: (query: Query) => Promise<ReadContext>
  readonly clock: () => number
  readonly rules: ImportRules
  /** The number of chunks in a round. */
  readonly parallelism: number
  /** The time from the end of a run to the next; with `off` it runs only on `run()`. */
  readonly intervalMs: number | 'off'
  readonly faults?: JobFaults | undefined
}

/** The number of rows that the core takes in a round. */
const ROUND_ROWS = 8000

/** Starts the core's job; the first run begins immediately. */
export function startImportJob(options: ImportJobOptions): ImportJob {
  const { intervalMs } = options
  let isClosing = false
  let timer: NodeJS.Timeout | undefined
  let lastRun: Promise<void> = Promise.resolve()

  const run = (faults = options.faults ?? {}): Promise<void> => {
    const done = lastRun.then(() => runRounds(options, faults, () => isClosing))
    lastRun = done.catch(() => undefined)
    return done
  }
  const repeat = async (afterMs: number): Promise<void> => {
    await run().catch((error) => console.error(error))
    if (!isClosing) timer = setTimeout(() => void repeat(afterMs), afterMs).unref()
  }
  if (intervalMs !== 'off') void repeat(intervalMs)
  return {
    run,
    async close() {
      isClosing = true
      clearTimeout(timer)
      await lastRun
    },
  }
}

/**
 * Tries each waiting row once. Up to 11.4, rows that another row held up wait for the next run;
 * later versions repeat until nothing changes.
 */
async function runRounds(
  options: ImportJobOptions,
  faults: JobFaults,
  isClosing: () => boolean,
): Promise<void> {
  const { retriesInRun } = options.rules
  let goesOn = true
  while (goesOn && !isClosing()) {
    const hasChanged = await runOnce(options, faults, isClosing)
    goesOn = retriesInRun && hasChanged
  }
}

/** Returns whether a row was imported or failed. */
async function runOnce(
  options: ImportJobOptions,
  faults: JobFaults,
  isClosing: () => boolean,
): Promise<boolean> {
  const { query } = options.database
  let left = (await countRows(query, 'NEW')) + (await countRows(query, 'PROCESSING'))
  let hasChanged = false
  while (left > 0 && !isClosing()) {
    const ids = await claimRows(options)
    if (ids.length === 0) return hasChanged
    left -= ids.length
    for (const chunk of chunksOf(ids, options.parallelism)) {
      if (isClosing()) return hasChanged
      hasChanged = (await importChunk(options, faults, chunk)) || hasChanged
      // The database runs in this thread and never waits: without this, no request would be read.
      await nextTurn()
    }
    // PGlite has no autovacuum: without this, it would keep planning for empty tables, and scan whole ones.
    await query('analyze')
  }
  return hasChanged
}

/** Up to 11.4, the core marks the rows that it is about to import as `PROCESSING`. */
async function claimRows({ database, clock, rules }: ImportJobOptions): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `select id from bulk_import_users where status in ('NEW', 'PROCESSING')
     order by position limit ${ROUND_ROWS}`,
  )
  const ids = rows.map(({ id }) => id)
  if (rules.retriesInRun) return ids
  await database.query(
    `update bulk_import_users set status = 'PROCESSING', updated_at = $2
     where id in (select json_array_elements_text($1::json))`,
    [JSON.stringify(ids), clock()],
  )
  return ids
}

function chunksOf(ids: readonly string[], parallelism: number): string[][] {
  const size = Math.floor(ids.length / parallelism) + 1
  const count = Math.ceil(ids.length / size)
  return Array.from({ length: count }, (_, index) => ids.slice(index * size, (index + 1) * size))
}

/** Returns whether a row was imported or failed. */
async function importChunk(
  options: ImportJobOptions,
  faults: JobFaults,
  ids: readonly string[],
): Promise<boolean> {
  const { database, clock } = options
  try {
    const imported = await database.transaction((query) =>
      importRows(query, { ids, options, faults }),
    )
    faults.beforeDelete?.()
    await deleteRows(database.query, imported)
    return true
  } catch (error) {
    if (error instanceof DatabaseFault) return false
    if (!(error instanceof BlamedFault || error instanceof ChunkFault)) throw error
    const texts = textsOf(error, ids)
    // The core cannot store such a text, so the rows stay unchanged.
    if (![...texts.values()].every(isStorable)) return false
    await database.transaction((query) => markRows(query, { ids, texts, nowMs: clock() }))
    return true
  }
}

function textsOf(fault: BlamedFault | ChunkFault, ids: readonly string[]) {
  return fault instanceof BlamedFault ? fault.texts : new Map(ids.map((id) => [id, fault.message]))
}

interface ChunkImport {
  readonly ids: readonly string[]
  readonly options: ImportJobOptions
  readonly faults: JobFaults
}

/** Rows may have been deleted since the start of the round. */
async function importRows(
  query: Query,
  { ids, options, faults }: ChunkImport,
): Promise<readonly string[]> {
  const rows = await query<Row>(
    `select * from bulk_import_users where status in ('NEW', 'PROCESSING')
       and id in (select json_array_elements_text($1::json)) order by position`,
    [JSON.stringify(ids)],
  )
  if (faults.chunkFault !== undefined) throw new ChunkFault(faults.chunkFault)
  const context = await options.contextFor(query)
  await importUsers(query, readRows(rows, context), context)
  return rows.map(({ id }) => id)
}

/** Blames all users that are now invalid, in Java's form of a list. */
function readRows(rows: readonly Row[], context: ReadContext): ImportedUser[] {
  const invalid = new Map<string, string>()
  const users = rows.flatMap((row) => {
    const reading = readUser(rawUser(row), context)
    if ('user' in reading) return [reading.user]
    invalid.set(row.id, `[${reading.errors.join(', ')}]`)
    return []
  })
  if (invalid.size > 0) throw new BlamedFault(invalid)
  return users
}

interface Failing {
  readonly ids: readonly string[]
  readonly texts: ReadonlyMap<string, string>
  readonly nowMs: number
}

/** Rows with a text have failed permanently. The others wait for the next run. */
async function markRows(query: Query, { ids, texts, nowMs }: Failing): Promise<void> {
  const marks = ids.map((id) => ({ id, error_msg: texts.get(id) }))
  await query(
    `update bulk_import_users as b
     set status = case when m.error_msg is null then 'PROCESSING' else 'FAILED' end,
       error_msg = m.error_msg, updated_at = $2
     from json_to_recordset($1::json) as m (id text, error_msg text)
     where b.id = m.id and b.status in ('NEW', 'PROCESSING')`,
    [JSON.stringify(marks), nowMs],
  )
}
