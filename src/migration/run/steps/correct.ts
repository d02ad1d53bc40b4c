import { trimmed } from '../../record-validation/normalise.js'
import type { Correction, OpenCorrections } from '../../source/corrections.js'
import { MigrationError } from '../migration-error.js'
import {
  currentRecords,
  type IndexedRecord,
  type MigrationContext,
  recordPosition,
  replacementsIn,
} from '../records.js'
import type { EntryOf } from '../state/journal-entry.js'
import { detailsOf, type IdentityCode, identityCode, sizeOf } from '../state/run-state.js'
import { conflictEntries, examine } from './preflight.js'

type Corrected = Omit<EntryOf<'corrected'>, 'type' | 'source'>

/**
 * Checks all corrections before any of them is applied.
 *
 * @throws MigrationError `bad_corrections` at the first correction that does not fit the state of its
 * identity, or whose user the core would not accept.
 */
export async function checkCorrections(
  ctx: MigrationContext,
  open: OpenCorrections,
): Promise<Corrected & { readonly digest: string }> {
  assertCorrectable(ctx)
  const corrected: Corrected = { replaced: [], leftOut: [], accepted: [] }
  for await (const correction of open.corrections(ctx.signal)) {
    const line = correction.type === 'replace' ? correction.record.line : correction.line
    const recordIndex = recordIndexOf(ctx, correction, line)
    if (correction.type === 'replace') corrected.replaced.push([recordIndex, line])
    else {
      const list = correction.type === 'accept' ? corrected.accepted : corrected.leftOut
      list.push([recordIndex, line, correction.reason])
    }
  }
  if (corrected.replaced.length > 0) await checkReplacements(ctx, open, corrected)
  return { ...corrected, digest: open.digest() }
}

const WITHOUT_ACCOUNT: readonly IdentityCode[] = ['invalid', 'failed', 'missing']

const FITTING: Readonly<Record<Correction['type'], readonly IdentityCode[]>> = {
  replace: WITHOUT_ACCOUNT,
  leaveOut: WITHOUT_ACCOUNT,
  accept: ['differs', 'shared'],
}

const FITTING_IN_WORDS: Readonly<Record<Correction['type'], string>> = {
  replace: 'replaced: it is neither invalid, failed nor missing',
  leaveOut: 'left out: it is neither invalid, failed nor missing',
  accept: 'accepted: it neither differs nor is shared',
}

function recordIndexOf(
  ctx: MigrationContext,
  { type, externalUserId }: Correction,
  line: number,
): number {
  const recordIndex = ctx.sourceIndex.recordIndexOf(trimmed(externalUserId))
  if (recordIndex === undefined) {
    throw new MigrationError('bad_corrections', 'the source has no such identity', line)
  }
  if (!FITTING[type].includes(identityCode(ctx.journaled.state, recordIndex))) {
    const message = `this identity cannot be ${FITTING_IN_WORDS[type]}`
    throw new MigrationError('bad_corrections', message, line)
  }
  return recordIndex
}

/** @throws MigrationError `bad_corrections` at the first record that could not become an account of its own. */
async function checkReplacements(
  ctx: MigrationContext,
  open: OpenCorrections,
  { replaced, leftOut }: Corrected,
): Promise<void> {
  const lines = new Map(replaced)
  const without = new Set([...replaced, ...leftOut].map(([recordIndex]) => recordIndex))
  const { findings, taken, twice } = await examine(ctx, {
    records: () => replacementsIn(open.corrections(ctx.signal), ctx.sourceIndex),
    others: recordsInUse(ctx, without),
  })
  const objections = findings.map(({ message, line = 0 }) => ({ message, line }))
  for (const [recordIndex, line] of replaced) {
    const heldBy = taken.get(recordIndex)
    const earlier = twice.get(recordIndex)
    if (heldBy !== undefined) {
      const message = `login_taken in loginMethods: The account ${heldBy} has a login of the record.`
      objections.push({ line, message })
    }
    if (earlier === undefined) continue
    const other = lines.has(earlier) ? `Line ${lines.get(earlier)}` : recordPosition(ctx, earlier)
    const message = `login_twice in loginMethods: ${other} has the same login, and a login belongs to one account.`
    objections.push({ line, message })
  }
  const [first] = objections.sort((one, other) => one.line - other.line)
  if (first !== undefined) throw new MigrationError('bad_corrections', first.message, first.line)
}

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
  const { taken, twice } = await examine(ctx, {
    records: () => currentRecords(ctx, (recordIndex) => asked.has(recordIndex)),
    areValid: true,
    others: recordsInUse(ctx, asked),
  })
  const free = [...asked].filter(
    (recordIndex) => !taken.has(recordIndex) && !twice.has(recordIndex),
  )
  const isHeldBack = ([recordIndex]: readonly [number, unknown]): boolean =>
    identityCode(ctx.journaled.state, recordIndex) === 'invalid'
  const conflicts = conflictEntries(ctx, {
    taken: new Map([...taken].filter(isHeldBack)),
    twice: new Map([...twice].filter(isHeldBack)),
  })
  if (free.length + conflicts.taken.length + conflicts.twice.length > 0) {
    await ctx.journaled.write({ type: 'retry', codes: [...codes], records: free, ...conflicts })
  }
  if (free.length === 0) {
    const message =
      'other accounts or other records still have a login of each of them: correct the records'
    throw new MigrationError('bad_corrections', message)
  }
  ctx.emit('corrected', { users: free.length })
}

/** Returns record indexes in ascending order. */
function withCode(
  { journaled: { state } }: MigrationContext,
  codes: readonly string[],
): ReadonlySet<number> {
  const recordIndexes = new Set<number>()
  for (let recordIndex = 0; recordIndex < sizeOf(state); recordIndex++) {
    const { code } = detailsOf(state, recordIndex)
    const now = identityCode(state, recordIndex)
    if (code === undefined || !codes.includes(code)) continue
    if (now === 'failed' || now === 'invalid') recordIndexes.add(recordIndex)
  }
  return recordIndexes
}

/** States in which an identity gets no account from its current record. */
const HOLDS_NO_LOGIN: ReadonlySet<IdentityCode> = new Set([...WITHOUT_ACCOUNT, 'left_out'])

/** Yields the current records whose account exists or will exist, except the records of `without`. */
const recordsInUse = (
  ctx: MigrationContext,
  without: ReadonlySet<number>,
): AsyncGenerator<IndexedRecord> =>
  currentRecords(
    ctx,
    (recordIndex) =>
      !without.has(recordIndex) &&
      !HOLDS_NO_LOGIN.has(identityCode(ctx.journaled.state, recordIndex)),
  )

/** @throws MigrationError `bad_corrections` if corrections cannot be applied now. */
function assertCorrectable({ journaled }: MigrationContext): void {
  const { started, blocked } = journaled.state
  if (!started) {
    const message = 'nothing has been staged yet: correct the source itself, then run'
    throw new MigrationError('bad_corrections', message)
  }
  if (!blocked) return
  const message = 'a deletion did not account for each row: reconcile before anything is corrected'
  throw new MigrationError('bad_corrections', message)
}
