import type { SecretKind } from './secret-index.js'
import type { SecretSearch } from './secret-search.js'
import { textsIn } from './texts-in.js'

let current: SecretSearch | undefined

/** From now on, what the functions below are told goes into this search. */
export function beginSession(search: SecretSearch): void {
  current = search
}

/**
 * Tells the search of a secret that goes in. What is sent in `Authorization`, `Idempotency-Key` and
 * `api-key` is known without it. Does nothing outside the test suite.
 */
export const knowSecret = (kind: SecretKind, value: string | Uint8Array): void =>
  current?.know(kind, value)

/** Tells the search of something that comes out: all texts that the value holds. */
export function recordOutput(sink: string, value: unknown): void {
  if (current === undefined) return
  for (const { path, text } of textsIn(value)) {
    current.record(path === '' ? sink : `${sink}, ${path},`, text)
  }
}

/** The same for a piece of a stream. */
export const recordPiece = (sink: string, piece: string | Uint8Array): void =>
  current?.recordPiece(sink, piece)
