import { findHolder } from '../../account/conflicting-account.js'
import type { ImportUser } from '../../core/import-user.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import type { Entry } from '../state/journal-entry.js'
import type { LoginIndex } from './login-index.js'

type Records = Iterable<SurveyedRecord> | AsyncIterable<SurveyedRecord>

/** The accounts that exist at the core for some records, by ordinal. */
export interface LoginLookUp {
  /** Records that have their account. */
  readonly accounts: ReadonlySet<number>
  /** Records with a login that another account has, and the core's id of that account. */
  readonly taken: ReadonlyMap<number, string>
}

/** Looks up the account and the logins of each record, `lookUps` records at a time. */
export async function lookUpLogins(
  { core, settings, signal }: Pick<Work, 'core' | 'settings' | 'signal'>,
  records: Records,
): Promise<LoginLookUp> {
  const accounts = new Set<number>()
  const taken = new Map<number, string>()
  await forEachAtOnce(records, settings.lookUps, async ({ ordinal, externalUserId, value }) => {
    const ownId = () => core.coreIdOf(externalUserId, { signal })
    if ((await ownId()) !== undefined) return void accounts.add(ordinal)
    const heldBy = await findHolder(core, value as unknown as ImportUser, { signal })
    if (heldBy === undefined) return
    // The hook may have created the account between the two look-ups.
    if ((await ownId()) === heldBy) accounts.add(ordinal)
    else taken.set(ordinal, heldBy)
  })
  return { accounts, taken }
}

/**
 * Finds records that repeat a login of an earlier record, each with a sentence that names the earlier one.
 * `logins` has the logins in use; the logins of all other records are added to it.
 */
export async function findRepeatedLogins(
  work: Work,
  records: AsyncIterable<SurveyedRecord>,
  logins: LoginIndex,
): Promise<ReadonlyMap<number, string>> {
  const twice = new Map<number, string>()
  for await (const { ordinal, value } of records) {
    const user = value as unknown as ImportUser
    const earlier = logins.find(user)
    if (earlier === undefined) logins.add(user, ordinal)
    else twice.set(ordinal, `${placeOf(work, earlier)} has the same login.`)
  }
  return twice
}

/** Returns the position of a record, for example `Line 3 of the source`. */
export function placeOf({ survey, ledger: { state } }: Work, ordinal: number): string {
  const corrections = state.corrections[(state.recordsFrom[ordinal] ?? 0) - 1]
  return `Line ${survey.lineOf(ordinal)} of ${corrections?.name ?? 'the source'}`
}

const RECORDS_IN_AN_ENTRY = 500

export function conflictEntries(
  taken: ReadonlyMap<number, string>,
  twice: ReadonlyMap<number, string>,
): Entry[] {
  return [
    ...chunks([...taken].sort(byOrdinal), RECORDS_IN_AN_ENTRY).map(
      (some): Entry => ({ type: 'login_conflicts', taken: some, twice: [] }),
    ),
    ...chunks([...twice], RECORDS_IN_AN_ENTRY).map(
      (some): Entry => ({ type: 'login_conflicts', taken: [], twice: some }),
    ),
  ]
}

const byOrdinal = ([one]: readonly [number, string], [two]: readonly [number, string]): number =>
  one - two

export const chunks = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
