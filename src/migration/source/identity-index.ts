import { createDigestTable } from './digest-table.js'

/** Which identity of the source an external id names, from 0, in about 30 octets an identity. */
export interface IdentityIndex {
  readonly size: number
  /** Its ordinal; undefined for a duplicate. */
  add(externalUserId: string): number | undefined
  ordinalOf(externalUserId: string): number | undefined
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

/** Finds texts that come twice, in about 30 octets a text. */
export interface DigestSet {
  readonly size: number
  /** Whether it is new. */
  add(text: string): boolean
}

export function createDigestSet(): DigestSet {
  const table = createDigestTable()
  return {
    get size() {
      return table.size
    },
    add: (text) => table.add(text) !== undefined,
  }
}
