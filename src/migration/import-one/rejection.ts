import { CoreError } from '../core/core-error.js'
import { conflictCodeOf, errorCodeOf, isValidationText } from '../core/core-messages.js'
import type { UserFinding } from '../record-validation/user-finding.js'

/** What a refusal of a user that has no account says of it. */
export type Judged =
  | { readonly outcome: 'conflict'; readonly codes: readonly string[] }
  | { readonly outcome: 'invalid'; readonly errors: readonly UserFinding[] }

/**
 * Judges the texts with which the core refuses to import a user. It gives a fault of its database the
 * same status as one of the user, so only what is known to blame the user does.
 *
 * @throws CoreError with the outcome `unknown` for anything else.
 */
export function judgeRejection(texts: readonly string[]): Judged {
  const codes = texts.map(conflictCodeOf).filter((code) => code !== undefined)
  if (codes.length === texts.length) return { outcome: 'conflict', codes: [...new Set(codes)] }
  if (texts.every(isValidationText)) {
    const errors = texts.map((message) => ({ field: '', code: 'refused_by_core', message }))
    return { outcome: 'invalid', errors }
  }
  const known = texts.map(errorCodeOf).filter((code) => code !== undefined)
  const why = known.length === 0 ? 'with a text that is not known' : known.join(', ')
  throw new CoreError(`POST /bulk-import/import: the core answered 400: ${why}`, {
    code: 'bad_request',
    outcome: 'unknown',
    status: 400,
  })
}
