import type { ImportUser } from '../../core/import-user.js'
import type { Work } from '../migration-context.js'
import { MigrationError } from '../migration-error.js'
import type { SurveyedRecord } from '../read-source.js'
import { IDENTITY, type IdentityCode, numberOf } from '../state/identity-state.js'
import type { Entry } from '../state/journal-entry.js'
import { writeOrdinals } from '../state/record-indexes.js'
import { stateOf } from '../state/run-state.js'
import {
  conflictLists,
  createLoginIndex,
  findRepeatedLogins,
  type LoginIndex,
  lookUpLogins,
} from './login-conflicts.js'
import { recordsInForce } from './records.js'

/**
 * Marks the records that failed or were held back with one of these codes to be staged again. Skips records
 * whose login another account or record has, because they would fail again and make their chunk fail.
 *
 * @throws MigrationError `bad_corrections` if no record can be staged.
 */
export async function sendAgain(work: Work, codes: readonly string[]): Promise<void> {
  assertCorrectable(work)
  const asked = withCode(work, codes)
  if (asked.size === 0) {
    throw new MigrationError(
      'bad_corrections',
      `no record has failed or was held back with ${codes.join(' or ')}`,
    )
  }
  const { taken } = await lookUpLogins(
    work,
    recordsInForce(work, (ordinal) => asked.has(ordinal)),
  )
  const free = new Set([...asked].filter((ordinal) => !taken.has(ordinal)))
  const twice = await findRepeatedLogins(
    work,
    recordsInForce(work, (ordinal) => free.has(ordinal)),
    await loginsInUse(work, asked),
  )
  const ordinals = [...free].filter((ordinal) => !twice.has(ordinal))
  const isHeldBack = ([ordinal]: readonly [number, string]): boolean =>
    stateOf(work.ledger.state, ordinal) === IDENTITY.invalid
  const conflicts = conflictLists(
    new Map([...taken].filter(isHeldBack)),
    new Map([...twice].filter(isHeldBack)),
  )
  const entries = conflicts.map((lists, index): Entry => {
    const records = index === 0 ? writeOrdinals(ordinals) : ''
    return { type: 'retry', codes: [...codes], records, ...lists }
  })
  await work.ledger.write(...entries)
  if (ordinals.length === 0) {
    const message =
      'other accounts or other records still have a login of each of them: correct the records'
    throw new MigrationError('bad_corrections', message)
  }
  work.tell('corrected', { users: ordinals.length })
}

/** Returns ordinals in ascending order. */
function withCode({ ledger: { state } }: Work, codes: readonly string[]): ReadonlySet<number> {
  const numbers = new Set(codes.map(numberOf))
  const ordinals = new Set<number>()
  state.failureCodes.forEach((number, ordinal) => {
    if (number === 0 || !numbers.has(number)) return
    const code = stateOf(state, ordinal)
    if (code === IDENTITY.failed || code === IDENTITY.invalid) ordinals.add(ordinal)
  })
  return ordinals
}

/** States in which an identity gets no account from its record in force. */
const WITHOUT_ACCOUNT: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.invalid,
  IDENTITY.failed,
  IDENTITY.missing,
  IDENTITY.left_out,
])

/** Yields the records in force whose account exists or will exist, except those of `without`. */
export const recordsInUse = (
  work: Work,
  without: ReadonlySet<number>,
): AsyncGenerator<SurveyedRecord> =>
  recordsInForce(
    work,
    (ordinal) => !without.has(ordinal) && !WITHOUT_ACCOUNT.has(stateOf(work.ledger.state, ordinal)),
  )

async function loginsInUse(work: Work, without: ReadonlySet<number>): Promise<LoginIndex> {
  const logins = createLoginIndex()
  for await (const { ordinal, value } of recordsInUse(work, without)) {
    logins.add(value as unknown as ImportUser, ordinal)
  }
  return logins
}

/** @throws MigrationError `bad_corrections` if corrections cannot be applied now. */
export function assertCorrectable({ ledger }: Work): void {
  const { started, blocked } = ledger.state
  if (!started) {
    const message = 'nothing has been staged yet: correct the source itself, then run'
    throw new MigrationError('bad_corrections', message)
  }
  if (!blocked) return
  const message = 'a deletion did not account for each row: reconcile before anything is corrected'
  throw new MigrationError('bad_corrections', message)
}
