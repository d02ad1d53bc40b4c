import {
  FetchFailure,
  fetchKeySet,
  type KeySetResponse,
} from '../../verification/key-set/fetch-key-set.js'
import { readKeySet, type UsableKeys } from '../../verification/key-set/usable-keys.js'

export interface KeySetReply {
  readonly jwksUri: string
  /** Absent if there was no response. */
  readonly response?: ObservedResponse
  readonly outcome: KeySetOutcome
}

export interface ObservedResponse {
  readonly status: number
  readonly headers: Headers
  /** Milliseconds since the epoch by this machine's clock, as is `answeredAt`. */
  readonly requestedAt: number
  readonly answeredAt: number
}

type KeySetOutcome =
  | {
      readonly ok: true
      readonly document: unknown
      readonly screened: UsableKeys
      readonly freshness: KeySetResponse['freshness']
    }
  | { readonly ok: false; readonly failure: FetchFailure }

/** The default timeout of a receiver. */
const TIMEOUT_MS = 3000

/** Requests a key set once, with the code of a receiver, and records the response. */
export async function requestKeySet(jwksUri: string): Promise<KeySetReply> {
  let response: ObservedResponse | undefined
  const observedFetch: typeof globalThis.fetch = async (input, init) => {
    const requestedAt = Date.now()
    const fetched = await globalThis.fetch(input, init)
    const { status, headers } = fetched
    response = { status, headers, requestedAt, answeredAt: Date.now() }
    return fetched
  }
  const outcome = await fetchOutcome(jwksUri, observedFetch)
  return { jwksUri, outcome, ...(response !== undefined && { response }) }
}

async function fetchOutcome(
  jwksUri: string,
  fetch: typeof globalThis.fetch,
): Promise<KeySetReply['outcome']> {
  try {
    const result = await fetchKeySet({
      jwksUri,
      fetch,
      timeoutMs: TIMEOUT_MS,
      clock: Date.now,
      validators: undefined,
      earlierMaxAgeSeconds: undefined,
      signal: new AbortController().signal,
    })
    const document = result.kind === 'modified' ? result.document : undefined
    const screened = readKeySet(document, undefined)
    return { ok: true, document, screened, freshness: result.freshness }
  } catch (error) {
    if (!(error instanceof FetchFailure)) throw error
    return { ok: false, failure: error }
  }
}
