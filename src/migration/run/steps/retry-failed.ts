import type { MigrationContext } from '../migration-context.js'
import { MigrationError } from '../migration-error.js'
import { type IndexedRecord, userOf } from '../source-index.js'
import { IDENTITY_STATE, type IdentityCode, numberOf } from '../state/identity-state.js'
import { writeRecordIndexes } from '../state/record-indexes.js'
import { identityCode } from '../state/run-state.js'
import {
  conflictEntries,
  createLoginIndex,
  findRepeatedLogins,
  type LoginIndex,
  lookUpLogins,
} from './login-conflicts.js'
import { currentRecords } from './records.js'

/**
 * Marks the records that failed or were held back with one of these codes to be staged again. Skips records
 * whose login another account or record has, because they would fail again and make their chunk fail.
 *
 * @throws MigrationError `bad_corrections` if no record can be staged.
 */
export async function retryFailed(ctx: MigrationContext, codes: readonly string[]): Promise<void> {
  assertCorrectable(ctx)
  const asked = withCode(ctx, codes)
  if (asked.size === 0) {
    throw new MigrationError(
      'bad_corrections',
      `no record has failed or was held back with ${codes.join(' or ')}`,
    )
  }
  const { taken } = await lookUpLogins(
    ctx,
    currentRecords(ctx, (recordIndex) => asked.has(recordIndex)),
  )
  const free = new Set([...asked].filter((recordIndex) => !taken.has(recordIndex)))
  const twice = await findRepeatedLogins(
    ctx,
    currentRecords(ctx, (recordIndex) => free.has(recordIndex)),
    await loginsInUse(ctx, asked),
  )
  const recordIndexes = [...free].filter((recordIndex) => !twice.has(recordIndex))
  const isHeldBack = ([recordIndex]: readonly [number, string]): boolean =>
    identityCode(ctx.journaled.state, recordIndex) === IDENTITY_STATE.invalid
  const conflicts = conflictEntries(
    new Map([...taken].filter(isHeldBack)),
    new Map([...twice].filter(isHeldBack)),
  )
  if (recordIndexes.length + conflicts.taken.length + conflicts.twice.length > 0) {
    const records = writeRecordIndexes(recordIndexes)
    await ctx.journaled.write({ type: 'retry', codes: [...codes], records, ...conflicts })
  }
  if (recordIndexes.length === 0) {
    const message =
      'other accounts or other records still have a login of each of them: correct the records'
    throw new MigrationError('bad_corrections', message)
  }
  ctx.emit('corrected', { users: recordIndexes.length })
}

/** Returns record indexes in ascending order. */
function withCode(
  { journaled: { state } }: MigrationContext,
  codes: readonly string[],
): ReadonlySet<number> {
  const numbers = new Set(codes.map(numberOf))
  const recordIndexes = new Set<number>()
  state.failureCodes.forEach((number, recordIndex) => {
    if (number === 0 || !numbers.has(number)) return
    const now = identityCode(state, recordIndex)
    if (now === IDENTITY_STATE.failed || now === IDENTITY_STATE.invalid)
      recordIndexes.add(recordIndex)
  })
  return recordIndexes
}

/** States in which an identity gets no account from its current record. */
const HOLDS_NO_LOGIN: ReadonlySet<IdentityCode> = new Set([
  IDENTITY_STATE.invalid,
  IDENTITY_STATE.failed,
  IDENTITY_STATE.missing,
  IDENTITY_STATE.left_out,
])

/** Yields the current records whose account exists or will exist, except the records of `without`. */
export const recordsInUse = (
  ctx: MigrationContext,
  without: ReadonlySet<number>,
): AsyncGenerator<IndexedRecord> =>
  currentRecords(
    ctx,
    (recordIndex) =>
      !without.has(recordIndex) &&
      !HOLDS_NO_LOGIN.has(identityCode(ctx.journaled.state, recordIndex)),
  )

async function loginsInUse(
  ctx: MigrationContext,
  without: ReadonlySet<number>,
): Promise<LoginIndex> {
  const logins = createLoginIndex()
  for await (const record of recordsInUse(ctx, without)) {
    logins.add(userOf(record), record.recordIndex)
  }
  return logins
}

/** @throws MigrationError `bad_corrections` if corrections cannot be applied now. */
export function assertCorrectable({ journaled }: MigrationContext): void {
  const { started, blocked } = journaled.state
  if (!started) {
    const message = 'nothing has been staged yet: correct the source itself, then run'
    throw new MigrationError('bad_corrections', message)
  }
  if (!blocked) return
  const message = 'a deletion did not account for each row: reconcile before anything is corrected'
  throw new MigrationError('bad_corrections', message)
}
