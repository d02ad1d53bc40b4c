import { createDigestTable } from './digest-table.js'

/** Maps ids to the identities of the source. Takes about 30 bytes per id. */
export interface IdentityIndex {
  readonly size: number
  /** Returns the ordinal that already has the id, and keeps it; `undefined` if the id was added. */
  add(id: string, ordinal: number): number | undefined
  ordinalOf(id: string): number | undefined
}

export function createIdentityIndex(): IdentityIndex {
  const table = createDigestTable()
  return {
    get size() {
      return table.size
    },
    add: table.add,
    ordinalOf: table.find,
  }
}

/** Finds repeated texts. Takes about 30 bytes per text. */
interface DigestSet {
  readonly size: number
  has(text: string): boolean
  /** Returns whether the text is new. */
  add(text: string): boolean
}

export function createDigestSet(): DigestSet {
  const table = createDigestTable()
  return {
    get size() {
      return table.size
    },
    has: (text) => table.find(text) !== undefined,
    add: (text) => table.add(text, 0) === undefined,
  }
}
