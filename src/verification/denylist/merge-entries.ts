import type { DeniedKind } from './denylist-entry.js'

/** An entry in a receiver's copy of the list. */
export interface LocalEntry {
  readonly issuer: string
  readonly kind: DeniedKind
  /** Empty for a cut-off. */
  readonly value: string
  /** Seconds since the epoch; 0 unless it is a cut-off. */
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

/** A list that was read from the server. Entries and tombstones are keyed by their target. */
export interface ReadList {
  readonly version: ListVersion
  /** The server's time, in seconds since the epoch. */
  readonly serverSeconds: number
  readonly entries: ReadonlyMap<string, LocalEntry>
  /** The number of the version that allowed the target again. */
  readonly tombstones: ReadonlyMap<string, number>
}

/** The entries that a receiver applies. */
export interface LocalEntries {
  readonly entries: ReadonlyMap<string, LocalEntry>
  /** The targets that the list lacks, and those that it has with an earlier end or cut-off. */
  readonly retained: ReadonlySet<string>
}

export const NO_ENTRIES: LocalEntries = { entries: new Map(), retained: new Set() }

/**
 * Merges a list that was read. A local entry is removed only at its end or by a newer tombstone, never
 * because the list lacks it: a failover may have lost it. An entry that is both local and in the list gets the later
 * end, the later cut-off and the higher number of the two.
 */
export function merge(local: LocalEntries, list: ReadList): LocalEntries {
  const entries = new Map<string, LocalEntry>()
  const retained = new Set<string>()
  for (const [target, entry] of list.entries) {
    if (entry.endsAt > list.serverSeconds) entries.set(target, entry)
  }
  for (const [target, entry] of local.entries) {
    if (entry.endsAt <= list.serverSeconds) continue
    if (entry.number < (list.tombstones.get(target) ?? 0)) continue
    const listed = entries.get(target)
    entries.set(target, listed === undefined ? entry : combined(listed, entry))
    if (listed === undefined || !covers(listed, entry)) retained.add(target)
  }
  return { entries, retained }
}

const covers = (listed: LocalEntry, local: LocalEntry): boolean =>
  listed.endsAt >= local.endsAt && listed.issuedBefore >= local.issuedBefore

const combined = (listed: LocalEntry, local: LocalEntry): LocalEntry => ({
  ...listed,
  issuedBefore: Math.max(listed.issuedBefore, local.issuedBefore),
  number: Math.max(listed.number, local.number),
  endsAt: Math.max(listed.endsAt, local.endsAt),
})

/** The entries that have not expired. */
export function withoutEnded(local: LocalEntries, serverSeconds: number): LocalEntries {
  const entries = new Map([...local.entries].filter(([, { endsAt }]) => endsAt > serverSeconds))
  return { entries, retained: new Set([...local.retained].filter((target) => entries.has(target))) }
}

/** When the next entry ends; infinite if none does. */
export function nextEndOf({ entries }: LocalEntries): number {
  let next = Number.POSITIVE_INFINITY
  for (const { endsAt } of entries.values()) next = Math.min(next, endsAt)
  return next
}
