import { blamesTheUser, duplicateIn, errorCodeOf, saysLoginIsTaken } from '../core/core-messages.js'
import { withoutAccountData } from './without-account-data.js'

/** The parsed error of a failed row. */
export interface RowError {
  /** A code of the core, such as `E003`; `chunk_failed` for an unknown text; absent for validation messages. */
  readonly code?: string
  /** The text of the core, without account data. */
  readonly text: string
  /**
   * `login_taken`: another account, which `findTakenLogin` finds, has a login of the user. `blames_user`: the
   * record must be corrected. `validation`: a check of the core that passed at staging fails now.
   * `chunk_failed`: all rows of a chunk fail with such a text, so the cause may be another row.
   */
  readonly kind: 'login_taken' | 'blames_user' | 'validation' | 'chunk_failed'
}

/** Parses the `errorMessage` of a row: a text with a code, or a list of validation messages. */
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
  // A text that names a violated constraint contains no code.
  const rest = place < 0 ? message : message.slice(place + code.length + ': '.length)
  return `${code}: ${plainText(rest, row)}`
}

/** Returns only the violated constraint of a failed statement, because the rest quotes account data. */
const plainText = (text: string, row: unknown): string =>
  duplicateIn(text) ?? withoutAccountData(text, row)
