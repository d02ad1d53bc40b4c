import { MigrationError } from '../migration-error.js'
import { numberOf } from '../state/apply-rows.js'
import { IDENTITY } from '../state/identity-state.js'
import { writeOrdinals } from '../state/ordinals.js'
import { stateOf } from '../state/run-state.js'
import type { Work } from '../work.js'

/**
 * Whoever has failed with one of these codes is sent anew, with the same record.
 *
 * @throws MigrationError `bad_corrections` when nobody has.
 */
export async function sendAgain(work: Work, codes: readonly string[]): Promise<void> {
  assertCorrectable(work)
  const { state } = work.ledger
  const numbers = new Set(codes.map(numberOf))
  const ordinals: number[] = []
  state.failureCodes.forEach((number, ordinal) => {
    if (number === 0 || !numbers.has(number)) return
    if (stateOf(state, ordinal) === IDENTITY.failed) ordinals.push(ordinal)
  })
  if (ordinals.length === 0) {
    throw new MigrationError('bad_corrections', `nobody has failed with ${codes.join(' or ')}`)
  }
  await work.ledger.write({ type: 'again', codes: [...codes], of: writeOrdinals(ordinals) })
  work.tell('corrected', { users: ordinals.length })
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
