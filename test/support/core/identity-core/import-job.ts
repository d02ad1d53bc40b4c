import { setImmediate as nextTurn } from 'node:timers/promises'
import { BlamedFault, ChunkFault, DatabaseFault } from './import-faults.js'
import { importUsers } from './import-users.js'
import type { ImportedUser, ReadContext } from './imported-user.js'
import { readUser } from './read-user.js'
import type { Row, Tables } from './tables.js'

export interface ImportJob {
  /** Runs now, or after the current run. */
  run(): Promise<void>
  /** Ends after the current chunk. */
  close(): Promise<void>
}

export interface ImportJobOptions {
  readonly tables: Tables
  /** Returns the context for reading users: the current state of the core. */
  readonly context: () => ReadContext
  readonly clock: () => number
  /** The time from the end of a run to the next; with `off` it runs only on `run()`. */
  readonly intervalMs: number | 'off'
}

/** The number of chunks in a round. A core has one for each processor by default. */
const PARALLELISM = 2
/** The number of rows that the core takes in a round. */
const ROUND_ROWS = 8000

/** Starts the core's job; the first run begins immediately. */
export function startImportJob(options: ImportJobOptions): ImportJob {
  const { intervalMs } = options
  let isClosing = false
  let timer: NodeJS.Timeout | undefined
  let lastRun: Promise<void> = Promise.resolve()

  const run = (): Promise<void> => {
    const done = lastRun.then(() => runRounds({ ...options, isClosing: () => isClosing }))
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

interface Run extends ImportJobOptions {
  readonly isClosing: () => boolean
}

/** Tries each waiting row once. Rows that another row held up wait for the next run. */
async function runRounds(run: Run): Promise<void> {
  let left = waitingRows(run.tables).length
  while (left > 0) {
    const ids = claimRows(run)
    if (ids.length === 0) return
    left -= ids.length
    for (const chunk of chunksOf(ids)) {
      if (run.isClosing()) return
      await importChunk(run, chunk)
    }
  }
}

const isWaiting = (row: Row | undefined): row is Row =>
  row?.status === 'NEW' || row?.status === 'PROCESSING'

const waitingRows = ({ rows }: Tables): Row[] => [...rows.values()].filter(isWaiting)

/** Marks the rows that it is about to import as `PROCESSING`. */
function claimRows({ tables, clock }: Run): string[] {
  const rows = waitingRows(tables).slice(0, ROUND_ROWS)
  const updatedAt = clock()
  tables.change({ rows: rows.map((row) => ({ ...row, status: 'PROCESSING', updatedAt })) })
  return rows.map(({ id }) => id)
}

function chunksOf(ids: readonly string[]): string[][] {
  const size = Math.floor(ids.length / PARALLELISM) + 1
  const count = Math.ceil(ids.length / size)
  return Array.from({ length: count }, (_, index) => ids.slice(index * size, (index + 1) * size))
}

/** Rows may have been deleted since the start of the round; one that is deleted under way is imported. */
async function importChunk(run: Run, ids: readonly string[]): Promise<void> {
  const { tables, context } = run
  const waiting = () => ids.map((id) => tables.rows.get(id)).filter(isWaiting)
  try {
    const rows = waiting()
    const settings = context()
    await importUsers(tables, readRows(rows, settings), settings)
    // Two commits, as in a core: between them a user has an account and a row.
    await nextTurn()
    tables.change({ rowsGone: rows.map(({ id }) => id) })
  } catch (error) {
    if (error instanceof DatabaseFault) return
    if (!(error instanceof BlamedFault || error instanceof ChunkFault)) throw error
    markRows(run, waiting(), textsOf(error, ids))
  }
}

function textsOf(fault: BlamedFault | ChunkFault, ids: readonly string[]) {
  return fault instanceof BlamedFault ? fault.texts : new Map(ids.map((id) => [id, fault.message]))
}

/** Blames all users that are now invalid, in Java's form of a list. */
function readRows(rows: readonly Row[], context: ReadContext): ImportedUser[] {
  const invalid = new Map<string, string>()
  const users = rows.flatMap((row) => {
    const reading = readUser(row.user, context)
    if ('user' in reading) return [reading.user]
    invalid.set(row.id, `[${reading.errors.join(', ')}]`)
    return []
  })
  if (invalid.size > 0) throw new BlamedFault(invalid)
  return users
}

/** Rows with a text have failed permanently. The others wait for the next run. */
function markRows(
  { tables, clock }: Run,
  rows: readonly Row[],
  texts: ReadonlyMap<string, string>,
): void {
  const updatedAt = clock()
  const marked = rows.map((row): Row => {
    const errorMessage = texts.get(row.id)
    return {
      ...row,
      status: errorMessage === undefined ? 'PROCESSING' : 'FAILED',
      errorMessage,
      updatedAt,
    }
  })
  tables.change({ rows: marked })
}
