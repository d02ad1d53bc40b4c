import type { SecretKind } from './secret-index.js'
import type { SecretSearch } from './secret-search.js'
import { textsIn } from './texts-in.js'

const SESSION: unique symbol = Symbol.for('express-service-auth tests, search for secrets')

interface Session {
  current: SecretSearch | undefined
}

// One for the process, although each test file loads this module again: the watchers of the process are
// installed once, and tell the search of the file that runs.
const holder = globalThis as { [SESSION]?: Session }
holder[SESSION] ??= { current: undefined }
const session = holder[SESSION]

/** Makes the functions below pass what they get to this search. */
export function beginSession(search: SecretSearch): void {
  session.current = search
}

export const currentSearch = (): SecretSearch | undefined => session.current

/**
 * Tells the search a secret. It learns what is sent in `Authorization`, `Idempotency-Key` and `api-key` by
 * itself. Does nothing outside the test suite.
 */
export const knowSecret = (kind: SecretKind, value: string | Uint8Array): void =>
  session.current?.know(kind, value)

/** Tells the search an output: all texts in the value. */
export function recordOutput(sink: string, value: unknown): void {
  const search = session.current
  if (search === undefined) return
  for (const { path, text } of textsIn(value)) {
    search.record(path === '' ? sink : `${sink}, ${path},`, text)
  }
}

/** Tells the search a piece of a stream. */
export const recordPiece = (sink: string, piece: string | Uint8Array): void =>
  session.current?.recordPiece(sink, piece)
