import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { PGlite, Transaction } from '@electric-sql/pglite'
import { StartError } from '../../start-error.js'
import { Refused } from '../reply.js'
import { isStorable, nulText, STORAGE_EXCEPTION } from './database-text.js'
import { lockFolder } from './folder-lock.js'
import { SCHEMA } from './schema.js'

/** The tables belong to one person: rows hold what was staged in clear, passwords and all. */
const FOLDER_MODE = 0o700

/** Runs a statement; with parameters `$1`, `$2` and so on. */
export type Query = <Row>(sql: string, parameters?: readonly unknown[]) => Promise<Row[]>

export interface Database {
  readonly query: Query
  /** One after the other: there is one connection. Rolled back when the work throws. */
  transaction<Result>(work: (query: Query) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/**
 * Opens the core's database in a folder that this process then owns; makes it when it is not there,
 * which takes seconds.
 * @throws {StartError} when another process has it, or it holds something else
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

/** Set-up that is cut leaves nothing that could be taken for a database: it is renamed at its end. */
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

/** Loads the database when it is needed: a core without users starts faster without. */
async function createIn(dataDir: string): Promise<PGlite> {
  const { PGlite } = await import('@electric-sql/pglite')
  return PGlite.create({ dataDir })
}

function queryOf(on: PGlite | Transaction): Query {
  return async <Row>(sql: string, parameters: readonly unknown[] = []) => {
    // The import checks its texts itself, so only a text of a look-up can have a NUL here.
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
