import { setImmediate as nextTurn } from 'node:timers/promises'
import { BlamedFault, ChunkFault, DatabaseFault } from './import-faults.js'
import { importUsers } from './import-users.js'
import type { ImportedUser, ImportRules, ReadContext } from './imported-user.js'
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
  readonly rules: ImportRules
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

/**
 * Tries each waiting row once. Up to 11.4, rows that another row held up wait for the next run;
 * later versions repeat until nothing changes.
 */
async function runRounds(run: Run): Promise<void> {
  let goesOn = true
  while (goesOn && !run.isClosing()) {
    const hasChanged = await runOnce(run)
    goesOn = run.rules.retriesInRun && hasChanged
  }
}

/** Returns whether a row was imported or failed. */
async function runOnce(run: Run): Promise<boolean> {
  let left = waitingRows(run.tables).length
  let hasChanged = false
  while (left > 0 && !run.isClosing()) {
    const ids = claimRows(run)
    if (ids.length === 0) return hasChanged
    left -= ids.length
    for (const chunk of chunksOf(ids)) {
      if (run.isClosing()) return hasChanged
      hasChanged = (await importChunk(run, chunk)) || hasChanged
    }
  }
  return hasChanged
}

const isWaiting = (row: Row | undefined): row is Row =>
  row?.status === 'NEW' || row?.status === 'PROCESSING'

const waitingRows = ({ rows }: Tables): Row[] => [...rows.values()].filter(isWaiting)

/** Up to 11.4, the core marks the rows that it is about to import as `PROCESSING`. */
function claimRows({ tables, clock, rules }: Run): string[] {
  const rows = waitingRows(tables).slice(0, ROUND_ROWS)
  if (!rules.retriesInRun) {
    const updatedAt = clock()
    tables.change({ rows: rows.map((row) => ({ ...row, status: 'PROCESSING', updatedAt })) })
  }
  return rows.map(({ id }) => id)
}

function chunksOf(ids: readonly string[]): string[][] {
  const size = Math.floor(ids.length / PARALLELISM) + 1
  const count = Math.ceil(ids.length / size)
  return Array.from({ length: count }, (_, index) => ids.slice(index * size, (index + 1) * size))
}

/** Returns whether a row was imported or failed. Rows may have been deleted since the start of the round. */
async function importChunk(run: Run, ids: readonly string[]): Promise<boolean> {
  const { tables, rules, context } = run
  const waiting = () => ids.map((id) => tables.rows.get(id)).filter(isWaiting)
  try {
    const rows = waiting()
    const settings = context()
    // Core 12 holds its rows until the accounts are there. Up to 11.4, a row that is deleted meanwhile is imported.
    const stillWanted = (id: string) => !rules.retriesInRun || isWaiting(tables.rows.get(id))
    await importUsers(tables, readRows(rows, settings), { settings, stillWanted })
    // Two commits, as in a core: between them a user has an account and a row.
    await nextTurn()
    tables.change({ rowsGone: rows.map(({ id }) => id) })
    return true
  } catch (error) {
    if (error instanceof DatabaseFault) return false
    if (!(error instanceof BlamedFault || error instanceof ChunkFault)) throw error
    markRows(run, waiting(), textsOf(error, ids))
    return true
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
