import type { ImportUser } from '../../core/import-user.js'
import { findTakenLogin, type TakenLogin } from '../../reconcile/holder.js'
import { forEachAtOnce } from '../at-once.js'
import type { Entry, Refusal } from '../state/entry.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { writeOrdinals } from '../state/ordinals.js'
import type { SurveyedRecord } from '../survey.js'
import type { Work } from '../work.js'
import { recordsIn } from './records-in.js'

/** What has become of an identity whose row is gone. */
export type Settlement =
  | { readonly as: 'found' | 'alone'; readonly of: number }
  | ({ readonly as: 'refused' } & Refusal)

/** Identities written down at once. */
const CHUNK = 200

/** Decides, for all identities in a state, what has become of each; `undefined` decides nothing. */
export async function settleEach(
  work: Work,
  code: IdentityCode,
  settleOne: (record: SurveyedRecord) => Promise<Settlement | undefined>,
): Promise<void> {
  const { corrections } = work.ledger.state
  let settled: Settlement[] = []
  const flush = async (): Promise<void> => {
    const written = settled
    settled = []
    if (written.length === 0) return
    await work.ledger.write(entryOf(written))
    work.tell('settled', { users: written.length })
  }
  try {
    for (let from = 0; from <= corrections.length; from++) {
      const records = recordsIn(work, from, new Set([code]))
      await forEachAtOnce(records, work.settings.lookUps, async (record) => {
        const settlement = await settleOne(record)
        if (settlement !== undefined) settled.push(settlement)
        if (settled.length >= CHUNK) await flush()
      })
    }
  } finally {
    // What is known is written down, also when a later look-up has failed.
    await flush()
  }
}

function entryOf(settled: readonly Settlement[]): Entry {
  const ordinals = (as: Settlement['as']): string =>
    writeOrdinals(settled.filter((each) => each.as === as).map(({ of }) => of))
  const refused = settled.flatMap((each): Refusal[] => {
    if (each.as !== 'refused') return []
    const { as: _, ...refusal } = each
    return [refusal]
  })
  return { type: 'settled', found: ordinals('found'), alone: ordinals('alone'), refused }
}

/**
 * Looks up each identity whose row was withdrawn: it has an account, or another account has a login of
 * it, or it is to be imported alone.
 */
export const settle = (work: Work): Promise<void> =>
  settleEach(work, IDENTITY.unsettled, async (record) => {
    const { core, signal } = work
    const { ordinal: of, externalUserId } = record
    if ((await core.coreIdOf(externalUserId, { signal })) !== undefined) return { as: 'found', of }
    const taken = await findTakenLogin(core, record.value as unknown as ImportUser, { signal })
    return taken === undefined ? { as: 'alone', of } : refusedFor(record, taken)
  })

/** The refusal of an identity of which another account has a login. */
export const refusedFor = (
  { ordinal, line }: Pick<SurveyedRecord, 'ordinal' | 'line'>,
  taken: TakenLogin,
): Settlement => ({ as: 'refused', of: ordinal, line, ...taken, text: takenText(taken) })

/** As the core says it, without the login. */
export const takenText = ({ code }: TakenLogin): string => `${code}: ${TEXTS[code]}`

const TEXTS: Readonly<Record<TakenLogin['code'], string>> = {
  E003: 'A user with email … already exists in emailpassword loginMethod.',
  E005: 'A user with thirdPartyId … and thirdPartyUserId … already exists in thirdparty loginMethod.',
  E006: 'A user with email … already exists in passwordless loginMethod.',
  E007: 'A user with phoneNumber … already exists in passwordless loginMethod.',
  E022: 'The account info is already associated with another primary user.',
}
