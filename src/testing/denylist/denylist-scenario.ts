import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { DenylistEntry, DenylistTarget } from '../../verification/denylist/denylist-entry.js'
import type { DeniedLists, LiveDenylist } from '../../verification/denylist/live-denylist.js'

/** A live denylist, and the functions that change it. */
export interface DenylistUnderTest {
  /** The denylist under test. */
  readonly denylist: LiveDenylist
  /** Denies; resolves once the entry is written, whether or not it is in force. */
  deny(entry: DenylistEntry): unknown
  /** Ends an entry; resolves once that is written. */
  allow(target: DenylistTarget): unknown
}

/** Returns a new issuer, so that no two cases use the same. */
export const newIssuer = (): string => `https://${randomUUID()}.example/Core`

/** @throws AssertionError if the list is not known. */
export function knownLists(denylist: LiveDenylist, issuer: string): DeniedLists {
  const lists = denylist.lists(issuer)
  assert.ok(lists !== undefined, 'the list is known')
  return lists
}

/** Denies without an end. */
export async function denyFor(
  subject: DenylistUnderTest,
  issuer: string,
  thing: Pick<DenylistEntry, 'kind' | 'value'>,
): Promise<void> {
  const at = Math.floor(Date.now() / 1000)
  await subject.deny({ issuer, ...thing, reason: 'a test', by: 'a test', at, until: null })
}
