import type { CoreError } from '../../core/core-error.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import { writeOrdinals } from '../state/record-indexes.js'
import type { UndecidedBatch } from '../state/run-state.js'
import { ownRowOf } from './identity-of-row.js'
import { countLostCall } from './lost-calls.js'

interface Lost {
  /** When the call was abandoned, from `timing.elapsedMs`. */
  readonly givenUpAt: number
  /** The error that ends the run if too many calls get no reply. */
  readonly error?: CoreError
}

/**
 * Determines whether a call without a reply took effect. A call stages all of its users or none, and a
 * staged user has a row or an account. So one new row proves that all were staged, unless an earlier call
 * without a reply may have staged it. A user with neither proves that none was staged, but only after
 * `settleSeconds`, when the core is assumed to have ended the call.
 */
export async function resolveBatch(work: Work, { givenUpAt, error }: Lost): Promise<void> {
  const batch = work.ledger.state.undecided
  if (batch === undefined) return
  const settledAt = givenUpAt + work.settings.settleSeconds * 1000
  let settled = work.timing.elapsedMs() >= settledAt
  for (;;) {
    const rows = await newRowsOf(work, batch)
    if (rows === 'proof') return staged(work, batch, 'row')
    const found = await seenOf(work, batch, { rows, all: settled })
    if (found.size === batch.ordinals.length) return staged(work, batch, 'accounts')
    if (settled) return absent(work, { batch, found, error })
    await work.timing.sleep(Math.max(0, settledAt - work.timing.elapsedMs()), work.signal)
    settled = true
  }
}

/** Rows are read before accounts, so that a user who is imported between the two reads is not missed. */
async function newRowsOf(
  work: Work,
  { ordinals }: UndecidedBatch,
): Promise<ReadonlySet<number> | 'proof'> {
  const asked = new Set(ordinals)
  const found = new Set<number>()
  for await (const row of work.core.rows(undefined, { signal: work.signal })) {
    const ordinal = ownRowOf(work, row)
    if (ordinal === undefined || !asked.has(ordinal)) continue
    if (work.ledger.state.lostOnce[ordinal] === 0) return 'proof'
    found.add(ordinal)
  }
  return found
}

interface Asked {
  /** Ordinals of the users that have a row. */
  readonly rows: ReadonlySet<number>
  /** Looks up all users. Otherwise the first user without a row and an account ends the look-ups. */
  readonly all: boolean
}

/** Returns the ordinals of the users that have a row or an account. */
async function seenOf(
  work: Work,
  { ordinals }: UndecidedBatch,
  { rows, all }: Asked,
): Promise<ReadonlySet<number>> {
  const { core, survey, settings, signal } = work
  const found = new Set(rows)
  const others = ordinals.filter((ordinal) => !rows.has(ordinal))
  let someoneHasNone = false
  await forEachAtOnce(survey.externalIdsOf(others), settings.lookUps, async (identity) => {
    if (someoneHasNone && !all) return
    const coreUserId = await core.coreIdOf(identity.externalUserId, { signal })
    if (coreUserId === undefined) someoneHasNone = true
    else found.add(identity.ordinal)
  })
  return found
}

async function staged(
  work: Work,
  { batch, ordinals }: UndecidedBatch,
  by: 'row' | 'accounts',
): Promise<void> {
  await work.ledger.write({ type: 'batch_staged', batch, by })
  work.lostInARow = 0
  work.tell('reply_resolved', { batch, users: ordinals.length })
}

async function absent(
  work: Work,
  {
    batch: { batch, ordinals },
    found,
    error,
  }: {
    readonly batch: UndecidedBatch
    readonly found: ReadonlySet<number>
    readonly error: CoreError | undefined
  },
): Promise<void> {
  const inOrder = ordinals.filter((ordinal) => found.has(ordinal))
  await work.ledger.write({ type: 'batch_absent', batch, found: writeOrdinals(inOrder) })
  work.tell('reply_resolved', { batch, users: 0 })
  countLostCall(work, error)
}
