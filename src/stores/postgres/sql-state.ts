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
 * Returns `undefined` if the server sent none, for example because the connection was lost.
 */
export function sqlStateOf(error: unknown): string | undefined {
  for (const code of membersOf(error, CODES)) if (isSqlState(code)) return code
  return undefined
}

const isSqlState = (code: unknown): code is string =>
  typeof code === 'string' && SQLSTATE.test(code)

/** The members that hold the server's message: `originalMessage` in Prisma's adapter. */
const MESSAGES = ['message', 'originalMessage']

/** Whether the server's message contains a text, however the client's error is wrapped. */
export function messageIncludes(error: unknown, part: string): boolean {
  for (const text of membersOf(error, MESSAGES)) {
    if (typeof text === 'string' && text.includes(part)) return true
  }
  return false
}

/** Yields these members of an error and of the errors that it wraps or lists, the outermost first. */
function* membersOf(error: unknown, names: readonly string[]): Generator<unknown> {
  const candidates = [error]
  const seen = new Set<unknown>()
  for (const candidate of candidates) {
    if (seen.size === MAX_ERRORS) return
    if (typeof candidate !== 'object' || candidate === null || seen.has(candidate)) continue
    seen.add(candidate)
    const members = candidate as Readonly<Record<string, unknown>>
    for (const name of names) yield members[name]
    for (const name of WRAPPED) candidates.push(members[name])
    // Of an `AggregateError`.
    const { errors } = members
    if (Array.isArray(errors)) candidates.push(...errors.slice(0, MAX_ERRORS))
  }
}

// The codes that several files look for (Postgres, "PostgreSQL Error Codes").
export const UNIQUE_VIOLATION = '23505'
export const READ_ONLY_SQL_TRANSACTION = '25006'
export const IN_FAILED_SQL_TRANSACTION = '25P02'
export const SERIALIZATION_FAILURE = '40001'
export const LOCK_NOT_AVAILABLE = '55P03'
