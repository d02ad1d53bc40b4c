import type { StagedRow } from '../../core/reply.js'
import { findTakenLogin } from '../../reconcile/holder.js'
import { type RowError, readRowError } from '../../reconcile/row-error.js'
import { externalUserIdOf } from '../../user/external-user-id.js'
import { forEachAtOnce } from '../at-once.js'
import type { Entry } from '../state/entry.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'
import type { Work } from '../work.js'
import { ownRowOf } from './own-row.js'
import { takenText } from './settle.js'

/** Rows written down at once. */
const CHUNK = 200

/**
 * Writes down each row that has failed, with its reason; of others' rows nothing. A row that may have failed
 * for another of its chunk is withdrawn, and its identity imported alone: that tells.
 */
export async function collect(work: Work): Promise<void> {
  const { core, ledger, settings, signal } = work
  let entries: Entry[] = []
  let failed = 0
  let withdrawn: Withdrawn[] = []
  const flush = async (): Promise<void> => {
    const written = entries
    const rows = withdrawn
    entries = []
    withdrawn = []
    if (rows.length > 0) written.push({ type: 'withdrawn', rows })
    if (written.length > 0) await ledger.write(...written)
  }
  const rows = core.rows('FAILED', { signal })
  await forEachAtOnce(rows, settings.lookUps, async (row) => {
    const ordinal = ownRowOf(work, row)
    if (ordinal === undefined) return
    const entry = await rowEntry(work, row, ordinal)
    if (entry === undefined) withdrawn.push([row.id, ordinal])
    else entries.push(entry)
    if (entry?.as === 'failed') failed += 1
    if (entries.length + withdrawn.length >= CHUNK) await flush()
  })
  await flush()
  if (failed > 0) work.tell('row_failed', { users: failed })
  await ledger.write({ type: 'collected' })
}

type Withdrawn = readonly [row: string, ordinal: number]

/** `undefined` where nobody can tell by the row whether it, or another of its chunk, is at fault. */
async function rowEntry(
  work: Work,
  row: StagedRow,
  ordinal: number,
): Promise<Extract<Entry, { type: 'row' }> | undefined> {
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
  if (error !== undefined && isBelieved(error)) return { ...about, as: 'failed' }
  const taken = await findTakenLogin(core, row, { signal })
  if (taken === undefined) return undefined
  const { heldBy } = taken
  if (error?.kind === 'login_taken') return { ...about, as: 'failed', heldBy }
  return { ...about, as: 'failed', heldBy, code: taken.code, text: takenText(taken) }
}

/** Each text of the validation is about its row, and a code that blames nobody about the core. */
const isBelieved = ({ kind, code }: RowError): boolean =>
  kind === 'validation' || (kind === 'chunk_failed' && code !== 'chunk_failed')

/** The row is of an attempt before the decision that a person has made on the identity. */
const isDecided = ({ ledger }: Work, ordinal: number): boolean =>
  DECIDED.has(stateOf(ledger.state, ordinal))

const DECIDED: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.again,
  IDENTITY.alone,
  IDENTITY.left_out,
  IDENTITY.accepted,
])

const reasonOf = (
  error: RowError | undefined,
): { readonly code?: string; readonly text?: string } =>
  error === undefined
    ? {}
    : { text: error.text, ...(error.code !== undefined && { code: error.code }) }
