import { isObject } from '../../base/options.js'
import { blamesTheUser, duplicateIn, errorCodeOf, saysLoginIsTaken } from '../core/core-messages.js'
import { secretsOf } from '../core/cut-secrets.js'
import { CUT, KNOWN_TEXTS, lackedCodeOf, NAME, PLACEHOLDERS } from '../core/known-texts.js'
import { lowerCased } from '../record-validation/stored-form.js'

const MAX_TEXT_LENGTH = 500

/**
 * Removes account data from the core's message on a record or a row: one text, or several separated by
 * commas. Of the quoted values, only names of roles, tenants and users are kept, unless they contain a login
 * or a secret of the record. An unknown text is removed, because it may quote anything.
 */
export function withoutAccountData(text: string, record: unknown): string {
  const accountData = [...loginTextsOf(record), ...secretsOf(record)].map(lowerCased)
  const mayShow = (name: string): boolean =>
    !accountData.some((value) => value !== '' && name.toLowerCase().includes(value))
  return cutTexts(text, mayShow).slice(0, MAX_TEXT_LENGTH)
}

function loginTextsOf(record: unknown): string[] {
  const methods = isObject(record) ? record['loginMethods'] : undefined
  if (!Array.isArray(methods)) return []
  return methods
    .filter(isObject)
    .flatMap((method) => [method['email'], method['phoneNumber'], method['thirdPartyUserId']])
    .filter((value) => typeof value === 'string')
}

/** Decides whether a quoted name is shown. */
type MayShow = (name: string) => boolean

/** Returns the known texts, separated by commas, without quoted values. Cuts at the first unknown text. */
function cutTexts(text: string, mayShow: MayShow): string {
  const shown: string[] = []
  let place = 0
  do {
    const match = matchAt(text, place, mayShow)
    if (match === undefined) return [...shown, CUT].join(', ')
    shown.push(match.text)
    place = match.end + ', '.length
  } while (place < text.length)
  return shown.join(', ')
}

function matchAt(text: string, place: number, mayShow: MayShow) {
  for (const { pattern, parts } of KNOWN_TEXTS) {
    pattern.lastIndex = place
    const match = pattern.exec(text)
    if (match === null) continue
    const quoted = match.slice(1)
    const shown = parts.map((part) => {
      const placeholder = PLACEHOLDERS[part]
      if (placeholder === undefined) return part
      const value = quoted.shift() ?? ''
      const isCut = part === NAME && !mayShow(value)
      return placeholder.shown?.test(value) && !isCut ? value : CUT
    })
    return { text: shown.join(''), end: place + match[0].length }
  }
  return undefined
}

/** The parsed error of a failed row. */
export interface RowError {
  /** A code of the core, such as `E003`; `chunk_failed` for an unknown text; absent for validation messages. */
  readonly code?: string
  /** The text of the core, without account data. */
  readonly text: string
  /**
   * `login_taken`: another account, which `findTakenLogin` finds, has a login of the user. `blames_user`: the
   * record must be corrected. `validation`: a check of the core that passed at staging fails now.
   * `chunk_failed`: all rows of a chunk fail with this text, so the cause may be another row.
   */
  readonly kind: 'login_taken' | 'blames_user' | 'validation' | 'chunk_failed'
}

/** Parses the `errorMessage` of a row: a text with a code, or a list of validation messages. */
export function readRowError(message: string, row: unknown): RowError {
  const code = errorCodeOf(message)
  if (code !== undefined) return { code, text: codedText(code, message, row), kind: blameOf(code) }
  const [, list] = /^\[([\s\S]*)\]$/.exec(message) ?? []
  if (list !== undefined) {
    const lacked = lackedCodeOf(list)
    const text = withoutAccountData(list, row)
    return { ...(lacked !== undefined && { code: lacked }), text, kind: 'validation' }
  }
  return { code: 'chunk_failed', text: plainText(message, row), kind: 'chunk_failed' }
}

function blameOf(code: string): RowError['kind'] {
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
