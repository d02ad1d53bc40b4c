import type { StagedRow } from '../../core/reply.js'
import { findHolder } from '../../reconcile/holder.js'
import { type RowError, readRowError } from '../../reconcile/row-error.js'
import { externalUserIdOf } from '../../user/external-user-id.js'
import { forEachAtOnce } from '../at-once.js'
import type { Entry } from '../state/entry.js'
import { IDENTITY } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'
import type { Work } from '../work.js'
import { ownRowOf } from './own-row.js'

/** Rows written down at once. */
const CHUNK = 200

/** In a chunk of more than 100 users the core's job may blame another than it means. */
const HELD_BY_NOBODY = 'No account holds it: the user is to be sent again with this code.'

/** Writes down each row that has failed, with its reason; of others' rows nothing. */
export async function collect(work: Work): Promise<void> {
  const { core, ledger, settings, signal } = work
  let entries: Entry[] = []
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
  await ledger.write({ type: 'collected' })
}

async function rowEntry(
  work: Work,
  row: StagedRow,
  ordinal: number,
): Promise<Extract<Entry, { type: 'row' }>> {
  const { core, signal } = work
  const externalUserId = externalUserIdOf(row) ?? ''
  const error = row.errorMessage === undefined ? undefined : readRowError(row.errorMessage, row)
  const about = {
    type: 'row',
    row: row.id,
    of: ordinal,
    line: work.survey.lineOf(ordinal),
    externalUserId,
    ...reasonOf(error),
  } as const
  const isTwin =
    isDecided(work, ordinal) || (await core.coreIdOf(externalUserId, { signal })) !== undefined
  if (isTwin) return { ...about, as: 'twin' }
  if (error?.kind !== 'login_taken') return { ...about, as: 'failed' }
  const heldBy = await findHolder(core, row, { signal })
  if (heldBy !== undefined) return { ...about, as: 'failed', heldBy }
  return { ...about, as: 'failed', text: `${error.text} ${HELD_BY_NOBODY}` }
}

/** The row is of an attempt before the decision that a person has made on the identity. */
function isDecided({ ledger }: Work, ordinal: number): boolean {
  const code = stateOf(ledger.state, ordinal)
  return code === IDENTITY.again || code === IDENTITY.left_out || code === IDENTITY.accepted
}

const reasonOf = (
  error: RowError | undefined,
): { readonly code?: string; readonly text?: string } =>
  error === undefined
    ? {}
    : { text: error.text, ...(error.code !== undefined && { code: error.code }) }
