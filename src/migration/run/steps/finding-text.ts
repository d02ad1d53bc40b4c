import { withoutAccountData } from '../../account/without-account-data.js'
import {
  USER_WARNING_CODES,
  type UserErrorCode,
  type UserFinding,
} from '../../record-validation/user-finding.js'

const OWN_ERROR_CODES: readonly UserErrorCode[] = ['not_unicode', 'nul', 'duplicate']
const OWN_CODES: ReadonlySet<string> = new Set([...OWN_ERROR_CODES, ...USER_WARNING_CODES])

/** Returns the message of a finding, without account data. Only messages of the core can quote such data. */
export const findingText = ({ code, message }: UserFinding, record: unknown): string =>
  OWN_CODES.has(code) ? message : withoutAccountData(message, record)
