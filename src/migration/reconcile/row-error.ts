import { errorCodeOf } from '../core/core-texts.js'
import { withoutAccountData } from './without-account-data.js'

/** What the core says of a row that has failed. */
export interface RowError {
  /** Such as `E003`; a text of the validation has none. */
  readonly code?: string
  /** What of the core's text may be written down: nothing of an account. */
  readonly text: string
  /**
   * `blames_user`: the record must be corrected. `blames_nobody`: the core must be mended, and a whole
   * chunk has failed with it. `validation`: the core's checks, which changed since staging.
   */
  readonly kind: 'blames_user' | 'blames_nobody' | 'validation'
  /** Another account holds a login of the user: `findHolder` tells which. */
  readonly isLoginHeld: boolean
}

const BLAMES_NOBODY: ReadonlySet<string> = new Set([
  ...['E002', 'E004', 'E008', 'E018', 'E019', 'E033', 'E036', 'E037', 'E040'],
])
const LOGIN_HELD: ReadonlySet<string> = new Set(['E003', 'E005', 'E006', 'E007', 'E022'])

/** Whether such a failure says that another account holds a login of the user. */
export const saysLoginIsHeld = (code: string): boolean => LOGIN_HELD.has(code)

/** Reads the `errorMessage` of a row: a text with a code, or a list of texts of the validation. */
export function readRowError(message: string, row: unknown): RowError {
  const code = errorCodeOf(message)
  if (code !== undefined) {
    return {
      code,
      text: `${code}: ${withoutAccountData(textBehind(code, message), row)}`,
      kind: BLAMES_NOBODY.has(code) ? 'blames_nobody' : 'blames_user',
      isLoginHeld: saysLoginIsHeld(code),
    }
  }
  const [, list] = /^\[([\s\S]*)\]$/.exec(message) ?? []
  const kind = list === undefined ? 'blames_user' : 'validation'
  return { text: withoutAccountData(list ?? message, row), kind, isLoginHeld: false }
}

/** Empty where the code is not written but told by the rest, which is of no known form then. */
function textBehind(code: string, message: string): string {
  const place = message.indexOf(`${code}: `)
  return place < 0 ? '' : message.slice(place + code.length + ': '.length)
}
