import { findTakenLogin } from '../../account/conflicting-account.js'
import { type RowError, readRowError } from '../../core/core-texts.js'
import { inGroups } from '../for-each-concurrently.js'
import type { MigrationContext } from '../migration-context.js'
import { IDENTITY_STATE, type IdentityCode } from '../state/identity-state.js'
import type { EntryOf } from '../state/journal-entry.js'
import { identityCode } from '../state/run-state.js'
import { type RunRow, rowEntry, unrecordedRows } from './records.js'
import { takenText } from './resolve-identities.js'

/**
 * Journals each failed row of this run, with its reason. If a row may have failed because of another row
 * of its chunk, the run deletes it and imports its user directly, which shows whether that user is at fault.
 */
export async function collect(ctx: MigrationContext): Promise<void> {
  const { journaled, settings } = ctx
  let failed = 0
  await inGroups(
    unrecordedRows(ctx, 'FAILED'),
    settings.lookUps,
    (found) => failedRowEntry(ctx, found),
    async (entries) => {
      failed += entries.filter(({ as }) => as === 'failed').length
      // `unresolved` comes last: a failed row of the same identity after it would set the identity to `failed`.
      await journaled.write(entries.toSorted((one, other) => order(one) - order(other)))
    },
  )
  if (failed > 0) ctx.emit('row_failed', { users: failed })
  await journaled.write({ type: 'rest', phase: 'reconcile' })
}

const order = ({ as }: EntryOf<'row'>): number => (as === 'unresolved' ? 1 : 0)

/** The row is `unresolved` if its error does not show whether this or another row of the chunk is at fault. */
async function failedRowEntry(ctx: MigrationContext, found: RunRow): Promise<EntryOf<'row'>> {
  const { core, signal } = ctx
  const { row, recordIndex, externalUserId } = found
  const error = row.errorMessage === undefined ? undefined : readRowError(row.errorMessage, row)
  const about = { ...rowEntry(ctx, found), ...describeRowError(error) }
  const isDuplicate =
    isDecided(ctx, recordIndex) || (await core.coreIdOf(externalUserId, { signal })) !== undefined
  if (isDuplicate) return { ...about, as: 'duplicate' }
  if (error !== undefined && isBelieved(error)) return { ...about, as: 'failed' }
  const taken = await findTakenLogin(core, row, { signal })
  if (taken === undefined) return { ...about, as: 'unresolved' }
  const { heldBy } = taken
  if (error?.kind === 'login_taken') return { ...about, as: 'failed', heldBy }
  return { ...about, as: 'failed', heldBy, code: taken.code, text: takenText(taken) }
}

/** Whether no other row is the cause: validation is about the row itself, a code that blames no user about the core. */
const isBelieved = ({ kind, code }: RowError): boolean =>
  kind === 'validation' || (kind === 'chunk_failed' && code !== 'chunk_failed')

/** Whether the row is from an earlier attempt, after which a person or the run has decided on the identity. */
const isDecided = ({ journaled }: MigrationContext, recordIndex: number): boolean =>
  DECIDED.has(identityCode(journaled.state, recordIndex))

const DECIDED: ReadonlySet<IdentityCode> = new Set([
  IDENTITY_STATE.retry,
  IDENTITY_STATE.to_import,
  IDENTITY_STATE.left_out,
  IDENTITY_STATE.accepted,
])

const describeRowError = (
  error: RowError | undefined,
): { readonly code?: string; readonly text?: string } =>
  error === undefined
    ? {}
    : { text: error.text, ...(error.code !== undefined && { code: error.code }) }
