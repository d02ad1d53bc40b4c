import { blamesTheUser, duplicateIn, errorCodeOf, saysLoginIsTaken } from '../core/core-texts.js'
import { withoutAccountData } from './without-account-data.js'

/** What the core says of a row that has failed. */
export interface RowError {
  /** Such as `E003`, or `chunk_failed` for an unknown text; texts of the validation have none. */
  readonly code?: string
  /** What of the core's text may be written down: nothing of an account. */
  readonly text: string
  /**
   * `login_taken`: another account has a login of the user, which `findHolder` finds. `blames_user`: the
   * record must be corrected. `validation`: the core's checks, which changed since staging.
   * `chunk_failed`: all rows of a chunk have failed with this text, so it says nothing of this one.
   */
  readonly kind: 'login_taken' | 'blames_user' | 'validation' | 'chunk_failed'
}

/** Reads the `errorMessage` of a row: a text with a code, or a list of texts of the validation. */
export function readRowError(message: string, row: unknown): RowError {
  const code = errorCodeOf(message)
  if (code !== undefined) return { code, text: codedText(code, message, row), kind: kindOf(code) }
  const [, list] = /^\[([\s\S]*)\]$/.exec(message) ?? []
  if (list !== undefined) return { text: withoutAccountData(list, row), kind: 'validation' }
  return { code: 'chunk_failed', text: plainText(message, row), kind: 'chunk_failed' }
}

function kindOf(code: string): RowError['kind'] {
  if (saysLoginIsTaken(code)) return 'login_taken'
  return blamesTheUser(code) ? 'blames_user' : 'chunk_failed'
}

function codedText(code: string, message: string, row: unknown): string {
  const place = message.indexOf(`${code}: `)
  // The code is not written where a constraint stands for it.
  const rest = place < 0 ? message : message.slice(place + code.length + ': '.length)
  return `${code}: ${plainText(rest, row)}`
}

/** A constraint that is violated is named: of a statement nothing else is told. */
const plainText = (text: string, row: unknown): string =>
  duplicateIn(text) ?? withoutAccountData(text, row)
