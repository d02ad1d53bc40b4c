import { findTakenLogin } from '../../account/conflicting-account.js'
import { type LoginHolder, loginKeysOf } from '../../record-validation/login-keys.js'
import { createDigestTable } from '../../source/digest-table.js'
import { forEachConcurrently } from '../for-each-concurrently.js'
import type { MigrationContext } from '../migration-context.js'
import { type IndexedRecord, userOf } from '../source-index.js'
import type { EntryOf } from '../state/journal-entry.js'
import { recordPosition } from './records.js'

type Records = Iterable<IndexedRecord> | AsyncIterable<IndexedRecord>

/** The accounts that exist at the core for some records, by record index. */
export interface LoginLookUp {
  /** Records that have their account. */
  readonly accounts: ReadonlySet<number>
  /** Records with a login that another account has, and the core's id of that account. */
  readonly taken: ReadonlyMap<number, string>
}

/** Looks up the account and the logins of each record, `lookUps` records at a time. */
export async function lookUpLogins(
  { core, settings, signal }: Pick<MigrationContext, 'core' | 'settings' | 'signal'>,
  records: Records,
): Promise<LoginLookUp> {
  const accounts = new Set<number>()
  const taken = new Map<number, string>()
  await forEachConcurrently(records, settings.lookUps, async (record) => {
    const { recordIndex, externalUserId } = record
    const currentId = () => core.coreIdOf(externalUserId, { signal })
    if ((await currentId()) !== undefined) return void accounts.add(recordIndex)
    const heldBy = (await findTakenLogin(core, userOf(record), { signal }))?.heldBy
    if (heldBy === undefined) return
    // `migrationEndpoint` may have created the account between the two look-ups.
    if ((await currentId()) === heldBy) accounts.add(recordIndex)
    else taken.set(recordIndex, heldBy)
  })
  return { accounts, taken }
}

/**
 * Finds records that repeat a login of an earlier record, each with a sentence that names the earlier one.
 * `logins` has the logins in use; the logins of all other records are added to it.
 */
export async function findRepeatedLogins(
  ctx: MigrationContext,
  records: AsyncIterable<IndexedRecord>,
  logins: LoginIndex,
): Promise<ReadonlyMap<number, string>> {
  const twice = new Map<number, string>()
  for await (const record of records) {
    const { recordIndex } = record
    const user = userOf(record)
    const earlier = logins.find(user)
    if (earlier === undefined) logins.add(user, recordIndex)
    else twice.set(recordIndex, `${recordPosition(ctx, earlier)} has the same login.`)
  }
  return twice
}

/** Returns the conflicts in the form of the journal. */
export const conflictEntries = (
  taken: ReadonlyMap<number, string>,
  twice: ReadonlyMap<number, string>,
): Pick<EntryOf<'retry'>, 'taken' | 'twice'> => ({
  taken: [...taken].sort(([one], [other]) => one - other),
  twice: [...twice],
})

/** Maps each login to its first record. Takes about 30 bytes per login. */
export interface LoginIndex {
  /** Adds the user's logins. An existing login keeps its record. `record` is a record index or a line. */
  add(user: LoginHolder, record: number): void
  /** Returns a record that has one of the user's logins. */
  find(user: LoginHolder): number | undefined
}

export function createLoginIndex(): LoginIndex {
  const table = createDigestTable()
  return {
    add(user, record) {
      for (const key of loginKeysOf(user)) table.add(key, record)
    },
    find(user) {
      for (const key of loginKeysOf(user)) {
        const record = table.find(key)
        if (record !== undefined) return record
      }
      return undefined
    },
  }
}
