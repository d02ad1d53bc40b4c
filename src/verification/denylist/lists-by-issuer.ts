import type { DeniedLists } from './live-denylist.js'
import type { HeldEntry } from './merge-entries.js'

/** For every issuer of which nothing is denied. */
export const NOTHING_DENIED: DeniedLists = Object.freeze({
  callers: new Set<string>(),
  keys: new Set<string>(),
  tokenIds: new Set<string>(),
})

interface Draft {
  readonly callers: Set<string>
  readonly keys: Set<string>
  readonly tokenIds: Set<string>
  issuedBefore?: number
}

/** What is denied of each issuer's tokens. */
export function listsByIssuer(entries: Iterable<HeldEntry>): ReadonlyMap<string, DeniedLists> {
  const lists = new Map<string, Draft>()
  for (const entry of entries) {
    let draft = lists.get(entry.issuer)
    if (draft === undefined) {
      draft = { callers: new Set(), keys: new Set(), tokenIds: new Set() }
      lists.set(entry.issuer, draft)
    }
    add(draft, entry)
  }
  for (const draft of lists.values()) Object.freeze(draft)
  return lists
}

function add(draft: Draft, { kind, value, issuedBefore }: HeldEntry): void {
  switch (kind) {
    case 'caller':
      draft.callers.add(value)
      break
    case 'key':
      draft.keys.add(value)
      break
    case 'token':
      draft.tokenIds.add(value)
      break
    case 'issued-before':
      draft.issuedBefore = issuedBefore
  }
}
