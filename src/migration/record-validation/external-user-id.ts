import { isRecord } from '../../base/options.js'
import type { ImportUser } from '../core/import-user.js'
import { isBlank, trimmed } from './core-trim.js'

export const MAX_EXTERNAL_USER_ID_LENGTH = 128

/** Returns the external id that the core will store for a record; `undefined` if the core would not accept it. */
export function externalUserIdOf(record: unknown): string | undefined {
  if (!isRecord(record) || !Object.hasOwn(record, 'externalUserId')) return undefined
  const given = record['externalUserId' satisfies keyof ImportUser]
  if (typeof given !== 'string' || isBlank(given)) return undefined
  const id = trimmed(given)
  return id === '' || given.length > MAX_EXTERNAL_USER_ID_LENGTH ? undefined : id
}
