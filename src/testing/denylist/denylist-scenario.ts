import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { DenylistEntry, DenylistTarget } from '../../verification/denylist/denylist-entry.js'
import type { DeniedLists, LiveDenylist } from '../../verification/denylist/live-denylist.js'

/** A live denylist, and what changes it. */
export interface DenylistUnderTest {
  /** What is tested. */
  readonly denylist: LiveDenylist
  /** Denies; resolves when that is written, in force or not. */
  deny(entry: DenylistEntry): unknown
  /** Ends an entry; resolves when that is written. */
  allow(target: DenylistTarget): unknown
}

/** No two cases use the same. */
export const newIssuer = (): string => `https://${randomUUID()}.example/Core`

/** @throws AssertionError when the list is not known. */
export function knownLists(denylist: LiveDenylist, issuer: string): DeniedLists {
  const lists = denylist.lists(issuer)
  assert.ok(lists !== undefined, 'the list is known')
  return lists
}

/** Denies for good. */
export async function denyFor(
  subject: DenylistUnderTest,
  issuer: string,
  thing: Pick<DenylistEntry, 'kind' | 'value'>,
): Promise<void> {
  const at = Math.floor(Date.now() / 1000)
  await subject.deny({ issuer, ...thing, reason: 'a test', by: 'a test', at, until: null })
}
