import { withoutAccountData } from '../../reconcile/without-account-data.js'
import { OWN_ERROR_CODES, USER_WARNING_CODES, type UserFinding } from '../../user/finding.js'

const OWN_CODES: ReadonlySet<string> = new Set([...OWN_ERROR_CODES, ...USER_WARNING_CODES])

/** What a finding says, without account data. Texts that are not the core's quote nothing. */
export const findingText = ({ code, message }: UserFinding, record: unknown): string =>
  OWN_CODES.has(code) ? message : withoutAccountData(message, record)
