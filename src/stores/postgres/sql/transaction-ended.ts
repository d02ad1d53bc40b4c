import { randomUUID } from 'node:crypto'
import { integerText } from './literals.js'

/** Nobody else can make the server say this: it is another one in every process. */
const OWN_WORD = randomUUID()

/**
 * What the server says when the trip-wire strikes. No statement holds it whole, so that a client that
 * quotes the statement in its error says something else.
 */
const TOLD = new RegExp(`express-service-auth: transaction \\d+ ended ${OWN_WORD}`)

const WRAPPED = ['cause', 'driverError', 'meta', 'driverAdapterError']
const MESSAGES = ['message', 'originalMessage']

/** How many errors are looked at; a circle of causes ends here too. */
const MAX_LOOKED_AT = 64

/**
 * A boolean expression that fails in any transaction but `fence`, and else is `value`. What fails is
 * the cast of a text. `concat` makes it, which Postgres takes to depend on settings, and so does not
 * evaluate before the statement runs.
 */
export const inTransaction = (fence: string, value: boolean): string =>
  'case when pg_catalog.pg_current_xact_id() ' +
  `OPERATOR(pg_catalog.=) ${integerText(fence)} then ${value} ` +
  `else pg_catalog.concat('express-service-auth: transaction ', ${integerText(fence)}, ' ended ', ` +
  `'${OWN_WORD}')::boolean end`

/** For an adapter that sees by itself that a handler ended its transaction: `isEndedByHandler` knows it. */
export const endedByHandler = (): Error =>
  new Error(`express-service-auth: transaction 0 ended ${OWN_WORD}`)

/**
 * Whether a statement failed because it was not in the transaction of its run any more, which only
 * the handler can have ended. Never throws.
 */
export function isEndedByHandler(error: unknown): boolean {
  const found = [error]
  const seen = new Set<unknown>()
  for (const candidate of found) {
    if (seen.size === MAX_LOOKED_AT) return false
    if (typeof candidate !== 'object' || candidate === null || seen.has(candidate)) continue
    seen.add(candidate)
    if (MESSAGES.some((name) => isTold(member(candidate, name)))) return true
    found.push(...WRAPPED.map((name) => member(candidate, name)))
  }
  return false
}

const isTold = (text: unknown): boolean => typeof text === 'string' && TOLD.test(text)

function member(holder: object, name: string): unknown {
  try {
    return Reflect.get(holder, name)
  } catch {
    return undefined
  }
}
