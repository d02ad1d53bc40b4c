import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { PGlite, Transaction } from '@electric-sql/pglite'
import { StartError } from '../../start-error.js'
import { Refused } from '../reply.js'
import { isStorable, nulText, STORAGE_EXCEPTION } from './database-text.js'
import { lockFolder } from './folder-lock.js'
import { SCHEMA } from './schema.js'

/** Only the owner may read the tables: rows hold the staged data in clear text, including passwords. */
const FOLDER_MODE = 0o700

/** Runs a statement with parameters `$1`, `$2` and so on. */
export type Query = <Row>(sql: string, parameters?: readonly unknown[]) => Promise<Row[]>

export interface Database {
  readonly query: Query
  /** Runs one after the other, because there is one connection. Rolls back if `work` throws. */
  transaction<Result>(work: (query: Query) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/**
 * Opens the core's database in a folder that this process then owns. Creates it if it does not
 * exist, which takes seconds.
 * @throws {StartError} if another process has it, or it holds something else
 */
export async function openDatabase(path: string): Promise<Database> {
  const folder = resolve(path)
  await mkdir(dirname(folder), { recursive: true, mode: FOLDER_MODE })
  const lock = await lockFolder(folder)
  if (lock === undefined) throw new StartError(`the database ${folder} is in use by another core`)
  try {
    await makeUnlessMade(folder)
    const pglite = await open(folder)
    const close = () => pglite.close().finally(lock.close)
    return { query: queryOf(pglite), transaction: (work) => runIn(pglite, work), close }
  } catch (error) {
    await lock.close()
    throw error
  }
}

async function open(folder: string): Promise<PGlite> {
  try {
    const pglite = await createIn(folder)
    await pglite.exec(SCHEMA)
    return pglite
  } catch (error) {
    const { message } = error as Error
    throw new StartError(`the database ${folder} cannot be opened (${message})`, { cause: error })
  }
}

/**
 * Sets up the database under another name and renames it at the end, so that an interrupted set-up
 * leaves nothing that looks like a database.
 */
async function makeUnlessMade(folder: string): Promise<void> {
  if (existsSync(join(folder, 'PG_VERSION'))) return
  if (existsSync(folder) && (await readdir(folder)).length > 0) {
    throw new StartError(`${folder} holds something else than the core's database`)
  }
  const unfinished = `${folder}.unfinished`
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { mode: FOLDER_MODE })
  await (await createIn(unfinished)).close()
  await rename(unfinished, folder)
}

/** Loads the database on demand, because a core without users starts faster without it. */
async function createIn(dataDir: string): Promise<PGlite> {
  const { PGlite } = await import('@electric-sql/pglite')
  return PGlite.create({ dataDir })
}

function queryOf(on: PGlite | Transaction): Query {
  return async <Row>(sql: string, parameters: readonly unknown[] = []) => {
    // The import checks its texts itself, so only the text of a look-up can contain a NUL here.
    if (parameters.some(hasNul)) throw new Refused(500, UNSTORABLE)
    const { rows } = await on.query<Row>(sql, [...parameters])
    return rows
  }
}

function hasNul(parameter: unknown): boolean {
  return typeof parameter === 'string' && !isStorable(parameter)
}

const UNSTORABLE = `${STORAGE_EXCEPTION}: org.postgresql.util.PSQLException: ERROR: ${nulText(2)}`

async function runIn<Result>(
  pglite: PGlite,
  work: (query: Query) => Promise<Result>,
): Promise<Result> {
  return pglite.transaction((transaction) => work(queryOf(transaction)))
}
