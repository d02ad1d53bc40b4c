import type { SecretKind, SecretSearch } from './secret-search.js'
import { textsIn } from './texts-in.js'

const SESSION: unique symbol = Symbol.for('express-service-auth tests, search for secrets')

// One for the process, although each test file loads this module again: the watchers of the process are
// installed once, and tell the search of the file that runs.
const holder = globalThis as { [SESSION]?: SecretSearch | undefined }

/** Makes the functions below pass what they get to this search. */
export function beginSession(search: SecretSearch | undefined): void {
  holder[SESSION] = search
}

export const currentSearch = (): SecretSearch | undefined => holder[SESSION]

/** Tells the search a secret. Does nothing outside the test suite. */
export const knowSecret = (kind: SecretKind, value: string | Uint8Array): void =>
  currentSearch()?.know(kind, value)

/** Tells the search an output: all texts in the value. */
export function recordOutput(sink: string, value: unknown): void {
  const search = currentSearch()
  if (search === undefined) return
  for (const text of textsIn(value)) search.record(sink, text)
}
