import type { SecretKind } from './secret-index.js'
import type { SecretSearch } from './secret-search.js'
import { textsIn } from './texts-in.js'

const SESSION: unique symbol = Symbol.for('express-service-auth tests, search for secrets')

interface Session {
  current: SecretSearch | undefined
}

// One in the process, while each test file has this module again: what watches the process is there
// once, and tells the search of the file that runs.
const holder = globalThis as { [SESSION]?: Session }
holder[SESSION] ??= { current: undefined }
const session = holder[SESSION]

/** From now on, what the functions below are told goes into this search. */
export function beginSession(search: SecretSearch): void {
  session.current = search
}

export const currentSearch = (): SecretSearch | undefined => session.current

/**
 * Tells the search of a secret that goes in. What is sent in `Authorization`, `Idempotency-Key` and
 * `api-key` is known without it. Does nothing outside the test suite.
 */
export const knowSecret = (kind: SecretKind, value: string | Uint8Array): void =>
  session.current?.know(kind, value)

/** Tells the search of something that comes out: all texts that the value holds. */
export function recordOutput(sink: string, value: unknown): void {
  const search = session.current
  if (search === undefined) return
  for (const { path, text } of textsIn(value)) {
    search.record(path === '' ? sink : `${sink}, ${path},`, text)
  }
}

/** The same for a piece of a stream. */
export const recordPiece = (sink: string, piece: string | Uint8Array): void =>
  session.current?.recordPiece(sink, piece)
