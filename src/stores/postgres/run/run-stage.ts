import type { CoupledEnding, CoupledFinding } from '../../../idempotency/coupled/coupled-store.js'
import type { KeptRecord, Opened } from '../sql/statements.js'

/**
 * The stage of a run.
 *
 * - `opening`: it is not known yet whether the handler may run.
 * - `known`: the handler may not run, because of `finding`.
 * - `running`: the handler is running.
 * - `undoing`: the handler has answered, and its writes are rolled back.
 * - `recording`: the handler has answered, and its record is being written.
 * - `committing`: COMMIT may have been sent; without a reply, its outcome is unknown.
 * - `failed`: the handler has answered, but the server failed; the run rolls back.
 * - `given_up`: the run took too long; nothing of it will be committed.
 */
export type Life =
  | { readonly at: 'opening' }
  | { readonly at: 'known'; readonly finding: CoupledFinding }
  | { readonly at: 'running' }
  | { readonly at: 'undoing'; readonly ending: CoupledEnding }
  | { readonly at: 'recording'; readonly ending: KeptEnding }
  | { readonly at: 'committing'; readonly ending: KeptEnding }
  | { readonly at: 'failed' }
  | { readonly at: 'given_up'; readonly reason: 'store_unavailable' | 'timed_out' }

/** An ending whose answer can be committed with the handler's writes. */
export type KeptEnding = Exclude<CoupledEnding, { readonly type: 'roll_back' }>

/**
 * - `opened`: the lock was tried, and the record was looked for.
 * - `answered`: the handler has answered. `keepsWrites`: its writes are kept even if it refuses.
 * - `failed`: the handler's answer does not count, because the server failed.
 * - `commits`: from here on the transaction may commit.
 * - `struck`: the time limit was reached.
 */
export type LifeEvent =
  | { readonly type: 'opened'; readonly opened: Opened }
  | { readonly type: 'answered'; readonly ending: CoupledEnding; readonly keepsWrites: boolean }
  | { readonly type: 'failed' }
  | { readonly type: 'commits' }
  | { readonly type: 'struck' }

/** Returns the stage after an event. An event that does not fit the stage changes nothing. */
export function advance(life: Life, event: LifeEvent): Life {
  switch (event.type) {
    case 'opened':
      return life.at === 'opening' ? afterOpening(event.opened) : life
    case 'answered':
      return life.at === 'running' ? afterAnswer(event.ending, event.keepsWrites) : life
    case 'failed':
      return life.at === 'recording' || life.at === 'undoing' ? { at: 'failed' } : life
    case 'commits':
      return life.at === 'recording' ? { at: 'committing', ending: life.ending } : life
    case 'struck':
      return afterStrike(life)
  }
}

/** A record takes precedence over the lock: of many simultaneous replays, all but one find it taken. */
function afterOpening({ lock, record }: Opened): Life {
  if (record !== undefined) return { at: 'known', finding: findingOf(record) }
  return lock === 'running' ? { at: 'known', finding: { outcome: 'running' } } : { at: 'running' }
}

export function findingOf({
  isSame,
  result,
  usedToken,
}: KeptRecord): Exclude<CoupledFinding, { outcome: 'running' }> {
  if (!isSame) return { outcome: 'mismatch' }
  if (result === undefined) return { outcome: 'result_not_stored' }
  return { outcome: 'finished', result, usedToken }
}

function afterAnswer(ending: CoupledEnding, keepsWrites: boolean): Life {
  if (ending.type === 'roll_back') return { at: 'undoing', ending }
  const isCommitted = ending.type === 'commit' || keepsWrites
  return isCommitted ? { at: 'recording', ending } : { at: 'undoing', ending }
}

function afterStrike(life: Life): Life {
  switch (life.at) {
    case 'opening':
      return { at: 'given_up', reason: 'store_unavailable' }
    case 'running':
    case 'recording':
      return { at: 'given_up', reason: 'timed_out' }
    default:
      return life
  }
}
