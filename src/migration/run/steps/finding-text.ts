import { withoutAccountData } from '../../reconcile/without-account-data.js'
import { USER_WARNING_CODES, type UserFinding } from '../../user/finding.js'

const WARNINGS: ReadonlySet<string> = new Set(USER_WARNING_CODES)

/** What a finding says, without account data. Warnings are not the core's, and quote nothing. */
export const findingText = ({ code, message }: UserFinding, record: unknown): string =>
  WARNINGS.has(code) ? message : withoutAccountData(message, record)
