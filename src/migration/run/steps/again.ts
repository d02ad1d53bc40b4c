import { saysLoginIsTaken } from '../../core/core-texts.js'
import type { ImportUser } from '../../core/import-user.js'
import { findHolder } from '../../reconcile/holder.js'
import { forEachAtOnce } from '../at-once.js'
import { MigrationError } from '../migration-error.js'
import { numberOf } from '../state/apply-rows.js'
import { IDENTITY } from '../state/identity-state.js'
import { writeOrdinals } from '../state/ordinals.js'
import { stateOf } from '../state/run-state.js'
import type { SurveyedRecord } from '../survey.js'
import type { Work } from '../work.js'

/**
 * Whoever has failed with one of these codes is sent anew, with the same record; but nobody whose login
 * another account still holds: he would fail again, and the core's job blames others with him.
 *
 * @throws MigrationError `bad_corrections` when nobody is left.
 */
export async function sendAgain(work: Work, codes: readonly string[]): Promise<void> {
  assertCorrectable(work)
  const failed = failedWith(work, codes)
  if (failed.size === 0) {
    throw new MigrationError('bad_corrections', `nobody has failed with ${codes.join(' or ')}`)
  }
  const held = await withHeldLogin(work, failedWith(work, codes.filter(saysLoginIsTaken)))
  const ordinals = [...failed].filter((ordinal) => !held.has(ordinal))
  if (ordinals.length === 0) {
    const message = 'other accounts still hold a login of each of them: correct the records'
    throw new MigrationError('bad_corrections', message)
  }
  await work.ledger.write({ type: 'again', codes: [...codes], of: writeOrdinals(ordinals) })
  work.tell('corrected', { users: ordinals.length })
}

/** Ordinals, ascending. */
function failedWith({ ledger: { state } }: Work, codes: readonly string[]): ReadonlySet<number> {
  const numbers = new Set(codes.map(numberOf))
  const ordinals = new Set<number>()
  state.failureCodes.forEach((number, ordinal) => {
    if (number === 0 || !numbers.has(number)) return
    if (stateOf(state, ordinal) === IDENTITY.failed) ordinals.add(ordinal)
  })
  return ordinals
}

/** Looked up anew: what held a login when the row failed may be gone. */
async function withHeldLogin(work: Work, asked: ReadonlySet<number>): Promise<ReadonlySet<number>> {
  const { core, settings, signal } = work
  const held = new Set<number>()
  await forEachAtOnce(recordsOf(work, asked), settings.lookUps, async ({ ordinal, value }) => {
    const user = value as unknown as ImportUser
    if ((await findHolder(core, user, { signal })) !== undefined) held.add(ordinal)
  })
  return held
}

async function* recordsOf(
  { survey, ledger: { state } }: Work,
  asked: ReadonlySet<number>,
): AsyncGenerator<SurveyedRecord> {
  if (asked.size === 0) return
  for (let from = 0; from <= state.corrections.length; from++) {
    for await (const record of survey.records(from)) {
      if (asked.has(record.ordinal) && state.recordsFrom[record.ordinal] === from) yield record
    }
  }
}

/** @throws MigrationError `bad_corrections` when corrections cannot be taken now. */
export function assertCorrectable({ ledger }: Work): void {
  const { started, blocked } = ledger.state
  if (!started) {
    const message = 'nothing has been staged yet: mend the source itself, then run'
    throw new MigrationError('bad_corrections', message)
  }
  if (!blocked) return
  const message = 'a deletion did not account for each row: reconcile before anything is corrected'
  throw new MigrationError('bad_corrections', message)
}
