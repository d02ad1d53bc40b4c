import { findTakenLogin, type TakenLogin } from '../../account/conflicting-account.js'
import type { ImportUser } from '../../core/import-user.js'
import { inChunks } from '../for-each-concurrently.js'
import type { MigrationContext } from '../migration-context.js'
import type { IndexedRecord } from '../source-index.js'
import { IDENTITY_STATE, type IdentityCode } from '../state/identity-state.js'
import { type EntryOf, lookedUpEntry, type Refusal } from '../state/journal-entry.js'
import { writeRecordIndexes } from '../state/record-indexes.js'
import { stateOf } from '../state/run-state.js'
import { currentRecords } from './records.js'

/** The outcome of an identity that no longer has a row. */
export type Resolution =
  | { readonly as: 'hasAccount' | 'toImport'; readonly record: number }
  | ({ readonly as: 'refused' } & Refusal)

/** Resolves each identity in the state `code`. If `resolveOne` returns `undefined`, it keeps this state. */
export const resolveEach = (
  ctx: MigrationContext,
  code: IdentityCode,
  resolveOne: (record: IndexedRecord) => Promise<Resolution | undefined>,
): Promise<void> =>
  inChunks(
    currentRecords(ctx, (recordIndex) => stateOf(ctx.journaled.state, recordIndex) === code),
    ctx.settings.lookUps,
    resolveOne,
    async (resolved) => {
      await ctx.journaled.write(entryOf(resolved))
      ctx.emit('settled', { users: resolved.length })
    },
  )

function entryOf(resolved: readonly Resolution[]): EntryOf<'looked_up'> {
  const recordIndexes = (as: Resolution['as']): string =>
    writeRecordIndexes(resolved.filter((each) => each.as === as).map(({ record }) => record))
  const refused = resolved.flatMap((each): Refusal[] => {
    if (each.as !== 'refused') return []
    const { as: _, ...refusal } = each
    return [refusal]
  })
  return lookedUpEntry({
    hasAccount: recordIndexes('hasAccount'),
    toImport: recordIndexes('toImport'),
    refused,
  })
}

/**
 * Looks up each identity whose row the run has deleted. Either it has an account, or another account has
 * one of its logins, or it is imported directly.
 */
export const resolveIdentities = (ctx: MigrationContext): Promise<void> =>
  resolveEach(ctx, IDENTITY_STATE.unresolved, async (record) => {
    const { core, signal } = ctx
    const { recordIndex, externalUserId } = record
    const coreUserId = await core.coreIdOf(externalUserId, { signal })
    if (coreUserId !== undefined) return { as: 'hasAccount', record: recordIndex }
    const taken = await findTakenLogin(core, record.value as unknown as ImportUser, { signal })
    return taken === undefined ? { as: 'toImport', record: recordIndex } : refusedFor(record, taken)
  })

/** Returns a refusal because another account has one of the logins. */
export const refusedFor = (
  { recordIndex, line }: Pick<IndexedRecord, 'recordIndex' | 'line'>,
  taken: TakenLogin,
): Resolution => ({ as: 'refused', record: recordIndex, line, ...taken, text: takenText(taken) })

/** Returns the error text of the core, without the login. */
export const takenText = ({ code }: TakenLogin): string => `${code}: ${TEXTS[code]}`

const TEXTS: Readonly<Record<TakenLogin['code'], string>> = {
  E003: 'A user with email … already exists in emailpassword loginMethod.',
  E005: 'A user with thirdPartyId … and thirdPartyUserId … already exists in thirdparty loginMethod.',
  E006: 'A user with email … already exists in passwordless loginMethod.',
  E007: 'A user with phoneNumber … already exists in passwordless loginMethod.',
  E022: 'The account info is already associated with another primary user.',
}
