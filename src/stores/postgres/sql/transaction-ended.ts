import { randomUUID } from 'node:crypto'
import { membersOf } from '../sql-state.js'
import { integerText } from './literals.js'

/** Random for each process, so that no other error can contain it. */
const MARKER = randomUUID()

/**
 * Matches the server's error if `inTransaction` fails. No statement contains the whole text, so that a
 * client error that quotes the statement does not match.
 */
const WRONG_TRANSACTION = new RegExp(`express-service-auth: transaction \\d+ ended ${MARKER}`)

const MESSAGES = ['message', 'originalMessage']

/**
 * A boolean SQL expression that fails in any transaction except `fence`, and otherwise is `value`. It fails
 * by the cast of a text. `concat` builds this text, because Postgres assumes that `concat` depends on
 * settings, and so does not evaluate it before the statement runs.
 */
export const inTransaction = (fence: string, value: boolean): string =>
  'case when pg_catalog.pg_current_xact_id() ' +
  `OPERATOR(pg_catalog.=) ${integerText(fence)} then ${value} ` +
  `else pg_catalog.concat('express-service-auth: transaction ', ${integerText(fence)}, ' ended ', ` +
  `'${MARKER}')::boolean end`

/**
 * The error of an adapter that detects itself that a handler ended its transaction. `isEndedByHandler` recognises it.
 */
export const endedByHandler = (): Error =>
  new Error(`express-service-auth: transaction 0 ended ${MARKER}`)

/**
 * Whether a statement failed because it was no longer in the transaction of its run, which only the handler
 * can have ended. Never throws.
 */
export function isEndedByHandler(error: unknown): boolean {
  for (const text of membersOf(error, MESSAGES)) {
    if (typeof text === 'string' && WRONG_TRANSACTION.test(text)) return true
  }
  return false
}
