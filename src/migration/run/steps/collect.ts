import { findTakenLogin } from '../../account/conflicting-account.js'
import { type RowError, readRowError } from '../../account/row-error.js'
import type { StagedRow } from '../../core/reply.js'
import { externalUserIdOf } from '../../record-validation/external-user-id.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import type { EntryOf } from '../state/journal-entry.js'
import { stateOf } from '../state/run-state.js'
import { ownRowOf } from './records.js'
import { takenText } from './resolve-identities.js'

/** Number of rows that are journaled together. */
const CHUNK = 200

/**
 * Journals each failed row of this run, with its reason. If a row may have failed because of another row
 * of its chunk, the run deletes it and imports its user directly, which shows whether that user is at fault.
 */
export async function collect(work: Work): Promise<void> {
  const { core, ledger, settings, signal } = work
  let entries: EntryOf<'row'>[] = []
  let failed = 0
  const flush = async (): Promise<void> => {
    const written = entries
    entries = []
    if (written.length > 0) await ledger.write(...written)
  }
  const rows = core.rows('FAILED', { signal })
  await forEachAtOnce(rows, settings.lookUps, async (row) => {
    const ordinal = ownRowOf(work, row)
    if (ordinal === undefined) return
    const entry = await rowEntry(work, row, ordinal)
    entries.push(entry)
    if (entry.as === 'failed') failed += 1
    if (entries.length >= CHUNK) await flush()
  })
  await flush()
  if (failed > 0) work.tell('row_failed', { users: failed })
  await ledger.write({ type: 'rest', phase: 'reconcile' })
}

/** The row is `unresolved` if it does not show whether it or another row of its chunk is at fault. */
async function rowEntry(work: Work, row: StagedRow, ordinal: number): Promise<EntryOf<'row'>> {
  const { core, signal } = work
  const externalUserId = externalUserIdOf(row) ?? ''
  const error = row.errorMessage === undefined ? undefined : readRowError(row.errorMessage, row)
  const about = {
    type: 'row',
    row: row.id,
    record: ordinal,
    line: work.survey.lineOf(ordinal),
    externalUserId,
    status: row.status,
    ...reasonOf(error),
  } as const
  const isDuplicate =
    isDecided(work, ordinal) || (await core.coreIdOf(externalUserId, { signal })) !== undefined
  if (isDuplicate) return { ...about, as: 'duplicate' }
  if (error !== undefined && isBelieved(error)) return { ...about, as: 'failed' }
  const taken = await findTakenLogin(core, row, { signal })
  if (taken === undefined) return { ...about, as: 'unresolved' }
  const { heldBy } = taken
  if (error?.kind === 'login_taken') return { ...about, as: 'failed', heldBy }
  return { ...about, as: 'failed', heldBy, code: taken.code, text: takenText(taken) }
}

/** Validation messages concern the row itself, and a code that blames no user concerns the core. */
const isBelieved = ({ kind, code }: RowError): boolean =>
  kind === 'validation' || (kind === 'chunk_failed' && code !== 'chunk_failed')

/** Whether the row is from an earlier attempt, since which a person or the run has decided on the identity. */
const isDecided = ({ ledger }: Work, ordinal: number): boolean =>
  DECIDED.has(stateOf(ledger.state, ordinal))

const DECIDED: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.again,
  IDENTITY.to_import,
  IDENTITY.left_out,
  IDENTITY.accepted,
])

const reasonOf = (
  error: RowError | undefined,
): { readonly code?: string; readonly text?: string } =>
  error === undefined
    ? {}
    : { text: error.text, ...(error.code !== undefined && { code: error.code }) }
