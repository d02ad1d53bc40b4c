import { createDigestTable } from './digest-table.js'

/** Which identity of the source an id names, in about 30 bytes an id. */
export interface IdentityIndex {
  readonly size: number
  /** The ordinal that has the id already, and keeps it; none when it was added. */
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

/** Finds texts that come twice, in about 30 bytes a text. */
interface DigestSet {
  readonly size: number
  has(text: string): boolean
  /** Whether it is new. */
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
