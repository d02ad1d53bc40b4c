import type { DeniedKind } from './denylist-entry.js'

/** An entry as receivers hold it. */
export interface HeldEntry {
  readonly issuer: string
  readonly kind: DeniedKind
  /** Empty for a cut-off. */
  readonly value: string
  /** Seconds since the epoch; 0 for what is no cut-off. */
  readonly issuedBefore: number
  /** The number of the version that wrote it. */
  readonly number: number
  /** Seconds since the epoch, by the server's clock; infinite for no end. */
  readonly endsAt: number
}

/** Names one state of the list. The nonce distinguishes states whose numbers a failover made equal. */
export interface ListVersion {
  readonly number: number
  readonly nonce: string
}

/** The list as it was read. Entries and marks are named by their target. */
export interface ReadList {
  readonly version: ListVersion
  /** The server's time, in seconds since the epoch. */
  readonly serverSeconds: number
  readonly entries: ReadonlyMap<string, HeldEntry>
  /** The number of the version that allowed a target. */
  readonly marks: ReadonlyMap<string, number>
}

/** The entries that a receiver holds. */
export interface Holding {
  readonly entries: ReadonlyMap<string, HeldEntry>
  /** The targets whose entry the list lacks, or has with an earlier end or cut-off. */
  readonly kept: ReadonlySet<string>
}

const NONE_KEPT: ReadonlySet<string> = new Set()

export const NOTHING_HELD: Holding = { entries: new Map(), kept: NONE_KEPT }

/**
 * Takes in a list. What is held goes only at its end or by a mark that is newer than it, never because
 * the list lacks it: a failover may have lost it. So an older entry that lasts as long makes it no older.
 */
export function merge(held: Holding, list: ReadList): Holding {
  const entries = new Map<string, HeldEntry>()
  const kept = new Set<string>()
  for (const [target, entry] of list.entries) {
    if (entry.endsAt > list.serverSeconds) entries.set(target, entry)
  }
  for (const [target, entry] of held.entries) {
    if (entry.endsAt <= list.serverSeconds) continue
    if (entry.number < (list.marks.get(target) ?? 0)) continue
    const listed = entries.get(target)
    const isCovered = listed !== undefined && covers(listed, entry)
    if (isCovered && listed.number >= entry.number) continue
    entries.set(target, listed === undefined ? entry : latestOf(listed, entry))
    if (!isCovered) kept.add(target)
  }
  return { entries, kept: kept.size === 0 ? NONE_KEPT : kept }
}

const covers = (listed: HeldEntry, held: HeldEntry): boolean =>
  listed.endsAt >= held.endsAt && listed.issuedBefore >= held.issuedBefore

const latestOf = (listed: HeldEntry, held: HeldEntry): HeldEntry => ({
  ...listed,
  issuedBefore: Math.max(listed.issuedBefore, held.issuedBefore),
  number: Math.max(listed.number, held.number),
  endsAt: Math.max(listed.endsAt, held.endsAt),
})

/** The entries that have not expired; the same value if none has. */
export function withoutEnded(held: Holding, serverSeconds: number): Holding {
  const left = [...held.entries].filter(([, { endsAt }]) => endsAt > serverSeconds)
  if (left.length === held.entries.size) return held
  const entries = new Map(left)
  const kept = [...held.kept].filter((target) => entries.has(target))
  return { entries, kept: kept.length === 0 ? NONE_KEPT : new Set(kept) }
}

/** When the next entry ends; infinite if none does. */
export function nextEndOf({ entries }: Holding): number {
  let next = Number.POSITIVE_INFINITY
  for (const { endsAt } of entries.values()) if (endsAt < next) next = endsAt
  return next
}
