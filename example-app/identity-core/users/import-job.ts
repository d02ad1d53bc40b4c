import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Database, Query } from './database.js'
import { BlamedFault, ChunkFault } from './import-fault.js'
import { importUsers } from './import-users.js'
import type { ImportedUser, ReadContext } from './imported-user.js'
import { readUser } from './read-user.js'
import { deleteRows, type Row, rawUser } from './rows.js'

/** What a run does besides, for tests. */
export interface JobFaults {
  /** Called when the accounts of a chunk are committed and its rows are not deleted yet; may throw. */
  readonly beforeDelete?: (() => unknown) | undefined
  /** Fails each chunk as a whole, with this text. */
  readonly chunkFault?: string | undefined
}

export interface ImportJob {
  /** Runs now, after a run that is under way. */
  run(faults?: JobFaults): Promise<void>
  /** Ends after the chunk that is under way. */
  close(): Promise<void>
}

export interface ImportJobOptions {
  readonly database: Database
  /** What users are read with: the state of the core at this time. */
  readonly contextFor: (query: Query) => Promise<ReadContext>
  readonly clock: () => number
  /** One connection serves requests too, between chunks: they are small. */
  readonly chunkUsers: number
  /** From the end of a run to the next; `off` runs only when it is told to. */
  readonly intervalMs: number | 'off'
  readonly faults?: JobFaults | undefined
}

/** How many rows the core takes in a round. */
const ROUND_ROWS = 8000

/** The core's job, the first run at once. */
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

/** Rounds until one finds nothing: those whom another's fault kept back have their turn in the next. */
async function runRounds(
  options: ImportJobOptions,
  faults: JobFaults,
  isClosing: () => boolean,
): Promise<void> {
  const { database, chunkUsers } = options
  while (!isClosing()) {
    const rows = await database.query<{ id: string }>(
      `select id from bulk_import_users where status in ('NEW', 'PROCESSING')
       order by position limit ${ROUND_ROWS}`,
    )
    if (rows.length === 0) return
    for (let start = 0; start < rows.length && !isClosing(); start += chunkUsers) {
      const ids = rows.slice(start, start + chunkUsers).map(({ id }) => id)
      await importChunk(options, faults, ids)
      // The database runs in this thread and never waits: without it no request would be read.
      await nextTurn()
    }
    // PGlite has no autovacuum: it would go on planning for empty tables, and read whole ones.
    await database.query('analyze')
  }
}

async function importChunk(
  options: ImportJobOptions,
  faults: JobFaults,
  ids: readonly string[],
): Promise<void> {
  const { database, clock } = options
  try {
    const imported = await database.transaction((query) =>
      importRows(query, { ids, options, faults }),
    )
    faults.beforeDelete?.()
    await deleteRows(database.query, imported)
  } catch (error) {
    if (!(error instanceof BlamedFault || error instanceof ChunkFault)) throw error
    await database.transaction((query) => markRows(query, { ids, fault: error, nowMs: clock() }))
  }
}

interface ChunkImport {
  readonly ids: readonly string[]
  readonly options: ImportJobOptions
  readonly faults: JobFaults
}

/** Rows may have been deleted since the round began. Of two that claim one login, the first staged wins. */
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

/** All who are invalid by now are to blame, in Java's form of a list. */
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
  readonly fault: BlamedFault | ChunkFault
  readonly nowMs: number
}

/** The blamed have failed for good, the others wait for the next round. */
async function markRows(query: Query, { ids, fault, nowMs }: Failing): Promise<void> {
  const textOf = (id: string) =>
    fault instanceof BlamedFault ? fault.texts.get(id) : fault.message
  const marks = ids.map((id) => ({ id, error_msg: textOf(id) }))
  await query(
    `update bulk_import_users as b
     set status = case when m.error_msg is null then 'PROCESSING' else 'FAILED' end,
       error_msg = m.error_msg, updated_at = $2
     from json_to_recordset($1::json) as m (id text, error_msg text)
     where b.id = m.id and b.status in ('NEW', 'PROCESSING')`,
    [JSON.stringify(marks), nowMs],
  )
}
