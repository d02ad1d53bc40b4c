import type { ImportUser } from '../../core/import-user.js'
import type { SurveyedRecord } from '../survey.js'
import type { Work } from '../work.js'
import { accountWith } from './holder.js'

/** What looking an identity up has shown. */
export type Comparison =
  | { readonly found: false; readonly heldBy: string | undefined }
  | {
      readonly found: true
      readonly coreUserId: string
      /** As the core shows the account: another identity's where it is shared. */
      readonly accountId: string
      readonly differences: readonly string[]
    }

export async function compare(work: Work, record: SurveyedRecord): Promise<Comparison> {
  const { core, signal } = work
  const coreUserId = await core.coreIdOf(record.externalUserId, { signal })
  const user = record.value as unknown as ImportUser
  if (coreUserId === undefined) return { found: false, heldBy: await accountWith(work, user) }
  const account = await core.user(record.externalUserId, { signal })
  if (account === undefined) return { found: false, heldBy: undefined }
  return { found: true, coreUserId, accountId: account.id, differences: [] }
}
