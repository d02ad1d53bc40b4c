/** The classes of PostgreSQL's appendix "PostgreSQL Error Codes". Neither `EPIPE` nor Prisma's `P2002` is in one. */
const SQLSTATE = /^(?:[0-5][0-9A-Z]|72|F0|HV|P0|XX)[0-9A-Z]{3}$/

/** The members that hold the code: `code` in pg, postgres.js and TypeORM, `originalCode` in Prisma's adapter. */
const CODES = ['code', 'originalCode']

/** The members that hold a wrapped error: TypeORM uses `driverError`, Prisma nests it in `meta`. */
const WRAPPED = ['cause', 'driverError', 'meta', 'driverAdapterError']

/** The maximum number of errors to inspect, nested or in a list. */
const MAX_ERRORS = 64

/**
 * Finds the server's SQLSTATE in a client's error, however it is wrapped; the outermost one if there are several.
 * Returns `undefined` if the server sent none, for example because the connection was lost. Never throws.
 */
export function sqlStateOf(error: unknown): string | undefined {
  for (const code of membersOf(error, CODES)) if (isSqlState(code)) return code
  return undefined
}

const isSqlState = (code: unknown): code is string =>
  typeof code === 'string' && SQLSTATE.test(code)

/** Yields these members of an error and of the errors that it wraps or lists, the outermost first. Never throws. */
export function* membersOf(error: unknown, names: readonly string[]): Generator<unknown> {
  const candidates = [error]
  const seen = new Set<unknown>()
  for (const candidate of candidates) {
    if (seen.size === MAX_ERRORS) return
    if (typeof candidate !== 'object' || candidate === null || seen.has(candidate)) continue
    seen.add(candidate)
    for (const name of names) yield member(candidate, name)
    candidates.push(...WRAPPED.map((name) => member(candidate, name)), ...aggregatedIn(candidate))
  }
}

/** The errors of an `AggregateError`. */
function aggregatedIn(candidate: object): readonly unknown[] {
  const errors = member(candidate, 'errors')
  try {
    return Array.isArray(errors) ? errors.slice(0, MAX_ERRORS) : []
  } catch {
    return []
  }
}

function member(holder: object, name: string): unknown {
  try {
    return Reflect.get(holder, name)
  } catch {
    return undefined
  }
}

// The codes that several files look for (Postgres, "PostgreSQL Error Codes").
export const UNIQUE_VIOLATION = '23505'
export const READ_ONLY_SQL_TRANSACTION = '25006'
export const IN_FAILED_SQL_TRANSACTION = '25P02'
export const SERIALIZATION_FAILURE = '40001'
export const LOCK_NOT_AVAILABLE = '55P03'
