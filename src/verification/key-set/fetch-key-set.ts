import { readClock } from '../../base/clock.js'
import { withDeadline } from '../../base/deadline.js'
import type { FetchFailureCode } from '../../base/decision/key-set-event.js'
import { readResponseBody, systemCodeOf } from '../../base/fetch.js'
import { type Freshness, freshnessOf } from './cache-control.js'
import { KEY_SET_PATHS } from './key-set.js'

export class FetchFailure extends Error {
  override readonly name = 'FetchFailure'
  readonly code: FetchFailureCode
  /** Node's code of the failed connection, such as `ECONNREFUSED`. */
  readonly systemCode: string | undefined
  /** Whether the response had the status 404. */
  readonly isNotFound: boolean

  constructor(code: FetchFailureCode, options: ErrorOptions & { readonly status?: number } = {}) {
    super(`the key set could not be fetched: ${code}`, options)
    this.code = code
    this.systemCode = systemCodeOf(this.cause)
    this.isNotFound = options.status === 404
  }
}

/** The reason of a failed fetch, for messages: `network, ECONNREFUSED`. */
export function formatFailure({ code, systemCode, isNotFound = false }: FailedFetch): string {
  if (isNotFound) return `${code} 404: ${KEY_SET_PATHS}`
  return systemCode === undefined ? code : `${code}, ${systemCode}`
}

interface FailedFetch {
  readonly code: FetchFailureCode
  readonly systemCode?: string | undefined
  readonly isNotFound?: boolean
}

/** The validators of the last response, for conditional requests (RFC 9110, section 8.8). */
export interface Validators {
  readonly etag?: string
  readonly lastModified?: string
}

export interface KeySetRequest {
  readonly jwksUri: string
  readonly fetch: typeof globalThis.fetch
  readonly timeoutMs: number
  readonly clock: () => number
  readonly validators: Validators | undefined
  readonly earlierMaxAgeSeconds: number | undefined
  readonly signal: AbortSignal
}

export type KeySetResponse =
  | {
      readonly kind: 'modified'
      readonly document: unknown
      readonly validators: Validators
      readonly freshness: Freshness
    }
  | { readonly kind: 'not_modified'; readonly freshness: Freshness }

/** A key set of a few keys takes less than 4 KiB. */
const MAX_BODY_BYTES = 64 * 1024

/**
 * One request for the key set, body included, within `timeoutMs`.
 *
 * @throws FetchFailure
 */
export async function fetchKeySet(request: KeySetRequest): Promise<KeySetResponse> {
  const limit = {
    timeoutMs: request.timeoutMs,
    timeoutError: () => new FetchFailure('timeout'),
    signal: request.signal,
    abortWhenSettled: true,
  }
  try {
    return await withDeadline(limit, ({ signal }) => send(request, signal))
  } catch (error) {
    if (error instanceof FetchFailure) throw error
    throw new FetchFailure('network', { cause: error })
  }
}

async function send(request: KeySetRequest, signal: AbortSignal): Promise<KeySetResponse> {
  const { clock, validators = {} } = request
  const startedAt = readClock(clock)
  const headers = new Headers({ accept: 'application/jwk-set+json, application/json' })
  if (validators.etag) headers.set('if-none-match', validators.etag)
  if (validators.lastModified) headers.set('if-modified-since', validators.lastModified)
  const mayBeUnmodified = headers.has('if-none-match') || headers.has('if-modified-since')
  const response = await request.fetch(request.jwksUri, { headers, redirect: 'manual', signal })
  const cacheControl = response.headers.get('cache-control')
  const age = response.headers.get('age')
  const freshness = (earlierMaxAgeSeconds?: number): Freshness => {
    const delaySeconds = Math.max(0, readClock(clock) - startedAt) / 1000
    return freshnessOf({ cacheControl, age }, delaySeconds, earlierMaxAgeSeconds)
  }
  if (response.status === 304 && mayBeUnmodified) {
    return { kind: 'not_modified', freshness: freshness(request.earlierMaxAgeSeconds) }
  }
  const { status } = response
  if (status !== 200 || response.redirected) throw new FetchFailure('status', { status })
  const body = await readResponseBody(response, MAX_BODY_BYTES)
  if (body === undefined) throw new FetchFailure('too_large')
  const document = parseDocument(body)
  const freshValidators = validatorsOf(response.headers)
  return { kind: 'modified', document, validators: freshValidators, freshness: freshness() }
}

/**
 * Parses a response's body; what it holds is not checked here.
 *
 * @throws FetchFailure if it is not JSON in UTF-8, or too large.
 */
export function parseDocument(body: Uint8Array): unknown {
  if (body.byteLength > MAX_BODY_BYTES) throw new FetchFailure('too_large')
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new FetchFailure('malformed')
  }
}

function validatorsOf(headers: Headers): Validators {
  const etag = headers.get('etag')
  const lastModified = headers.get('last-modified')
  return { ...(etag !== null && { etag }), ...(lastModified !== null && { lastModified }) }
}
