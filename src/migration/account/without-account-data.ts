import { isRecord } from '../../base/options.js'
import { secretsOf } from '../core/cut-secrets.js'
import { CUT, KNOWN_TEXTS, NAME, PLACEHOLDERS } from '../core/known-texts.js'
import { lowerCased } from '../record-validation/stored-form.js'
import {
  USER_WARNING_CODES,
  type UserErrorCode,
  type UserFinding,
} from '../record-validation/user-finding.js'

const MAX_TEXT_LENGTH = 500

/**
 * Removes account data from the core's message on a record or a row: one text, or several separated by
 * commas. Of the quoted values, only names of roles, tenants and users are kept, unless they contain a login
 * or a secret of the record. An unknown text is removed, because it may quote anything.
 */
export function withoutAccountData(text: string, record: unknown): string {
  const accountData = [...loginsOf(record), ...secretsOf(record)].map(lowerCased)
  const mayShow = (name: string): boolean =>
    !accountData.some((value) => value !== '' && name.toLowerCase().includes(value))
  return cutTexts(text, mayShow).slice(0, MAX_TEXT_LENGTH)
}

function loginsOf(record: unknown): string[] {
  const methods = isRecord(record) ? record['loginMethods'] : undefined
  if (!Array.isArray(methods)) return []
  return methods
    .filter(isRecord)
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

const OWN_ERROR_CODES: readonly UserErrorCode[] = ['not_unicode', 'nul', 'duplicate']
const OWN_CODES: ReadonlySet<string> = new Set([...OWN_ERROR_CODES, ...USER_WARNING_CODES])

/** Returns the message of a finding, without account data. Only messages of the core can quote such data. */
export const findingText = ({ code, message }: UserFinding, record: unknown): string =>
  OWN_CODES.has(code) ? message : withoutAccountData(message, record)
