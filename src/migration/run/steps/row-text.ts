import { isRecord } from '../../../base/options.js'

const CUT = '…'
/** Whatever looks like an address, where a text quotes another user's. */
const ADDRESS = /[^\s'"(),;:<>[\]]+@[^\s'"(),;<>[\]]+/g
const LONGEST_TEXT = 500

/** A text of the core without the account data of the record that it is about. */
export function textWithoutAccountData(text: string, record: unknown): string {
  const values = accountDataOf(record).sort((one, other) => other.length - one.length)
  const cut = values.reduce((rest, value) => rest.replaceAll(value, CUT), text)
  return cut.replace(ADDRESS, CUT).slice(0, LONGEST_TEXT)
}

function accountDataOf(record: unknown): string[] {
  const methods = isRecord(record) ? record['loginMethods'] : undefined
  if (!Array.isArray(methods)) return []
  return methods.filter(isRecord).flatMap((method) => {
    const given = [method['email'], method['phoneNumber'], method['thirdPartyUserId']]
    return given
      .filter(isText)
      .flatMap((value) => [value, value.trim(), value.trim().toLowerCase()])
  })
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''
