/** Finds an ordinal by an external id. */
export interface IdentityIndex {
  /** The ordinal that has the id already; none when it was added. */
  add(externalUserId: string, ordinal: number): number | undefined
  ordinalOf(externalUserId: string): number | undefined
}

export function createIdentityIndex(): IdentityIndex {
  const ordinals = new Map<string, number>()
  return {
    add(id, ordinal) {
      const earlier = ordinals.get(id)
      if (earlier === undefined) ordinals.set(id, ordinal)
      return earlier
    },
    ordinalOf: (id) => ordinals.get(id),
  }
}
