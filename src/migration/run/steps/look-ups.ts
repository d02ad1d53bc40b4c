import type { Entry, EntryOf } from '../state/journal-entry.js'

/** Results of looking identities up, until they are written down together. */
export interface LookUps {
  readonly size: number
  same(ordinal: number, coreUserId: string): void
  differs(ordinal: number, coreUserId: string, differences: readonly string[]): void
  /** One account that several identities have. */
  shared(ordinals: readonly number[], coreUserId: string): void
  missing(ordinal: number, heldBy: string | undefined): void
  entry(): Entry
}

export function lookUps(): LookUps {
  const results: EntryOf<'looked_up'> = {
    type: 'looked_up',
    same: [],
    differs: [],
    shared: [],
    missing: [],
  }
  let size = 0
  return {
    get size() {
      return size
    },
    same(ordinal, coreUserId) {
      size += 1
      results.same.push([ordinal, coreUserId])
    },
    differs(ordinal, coreUserId, differences) {
      size += 1
      results.differs.push([ordinal, coreUserId, [...differences]])
    },
    shared(ordinals, coreUserId) {
      size += 1
      for (const ordinal of ordinals) results.shared.push([ordinal, coreUserId])
    },
    missing(ordinal, heldBy) {
      size += 1
      results.missing.push([ordinal, heldBy ?? null])
    },
    entry: () => results,
  }
}
