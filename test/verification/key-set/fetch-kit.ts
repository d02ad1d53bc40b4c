import { expect } from 'vitest'
import type { KeySetRequest } from '../../../src/verification/key-set/fetch-key-set.js'

export const DOCUMENT = { keys: [{ kid: 'a' }] }
/** Bytes of the largest key set. */
export const LIMIT = 64 * 1024

export const request = (jwksUri: string, more: Partial<KeySetRequest> = {}): KeySetRequest => ({
  jwksUri,
  fetch: globalThis.fetch,
  timeoutMs: 10_000,
  clock: Date.now,
  validators: undefined,
  earlierMaxAgeSeconds: undefined,
  signal: new AbortController().signal,
  ...more,
})

export const failure = (code: string): unknown =>
  expect.objectContaining({ name: 'FetchFailure', code })
