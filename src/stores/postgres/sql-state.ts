/** The classes of PostgreSQL's appendix "PostgreSQL Error Codes": neither `EPIPE` nor Prisma's `P2002` is in one. */
const SQLSTATE = /^(?:[0-5][0-9A-Z]|72|F0|HV|P0|XX)[0-9A-Z]{3}$/

/** Where clients keep the code: pg, postgres.js and TypeORM in `code`, Prisma's adapter in `originalCode`. */
const CODES = ['code', 'originalCode']

/** Where clients and wrappers keep the error below: TypeORM in `driverError`, Prisma below `meta`. */
const WRAPPED = ['cause', 'driverError', 'meta', 'driverAdapterError']

/** How many errors are looked at, one below another or side by side; a circle of causes ends here too. */
const MAX_LOOKED_AT = 64

/**
 * Finds the server's SQLSTATE in what a client rejected with, however it is wrapped; the outermost where
 * there are several. Undefined where the server said nothing, as when the connection was lost. Never throws.
 */
export function sqlStateOf(error: unknown): string | undefined {
  const found = [error]
  const seen = new Set<unknown>()
  for (const candidate of found) {
    if (seen.size === MAX_LOOKED_AT) return undefined
    if (typeof candidate !== 'object' || candidate === null || seen.has(candidate)) continue
    seen.add(candidate)
    const state = CODES.map((name) => member(candidate, name)).find(isSqlState)
    if (state !== undefined) return state
    found.push(...WRAPPED.map((name) => member(candidate, name)), ...severalIn(candidate))
  }
  return undefined
}

const isSqlState = (code: unknown): code is string =>
  typeof code === 'string' && SQLSTATE.test(code)

/** The errors of an `AggregateError`. */
function severalIn(candidate: object): readonly unknown[] {
  const errors = member(candidate, 'errors')
  try {
    return Array.isArray(errors) ? errors.slice(0, MAX_LOOKED_AT) : []
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
