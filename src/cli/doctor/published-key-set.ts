import { isStaticKeyId } from '../../base/compact-jws.js'
import type { SkipReason } from '../../base/decision/key-set-event.js'
import { isObject } from '../../base/options.js'
import {
  FetchFailure,
  fetchKeySet,
  type KeySetResponse,
} from '../../verification/key-set/fetch-key-set.js'
import { readKeySet, type UsableKeys } from '../../verification/key-set/usable-keys.js'
import { type Policy, refusesStaticKey } from '../../verification/policy/policy.js'

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
  const replyOf = (outcome: KeySetOutcome): KeySetReply => ({
    jwksUri,
    outcome,
    ...(response !== undefined && { response }),
  })
  try {
    const result = await fetchKeySet({
      jwksUri,
      fetch: observedFetch,
      timeoutMs: TIMEOUT_MS,
      clock: Date.now,
      validators: undefined,
      earlierMaxAgeSeconds: undefined,
      signal: new AbortController().signal,
    })
    const document = result.kind === 'modified' ? result.document : undefined
    const screened = readKeySet(document, undefined)
    return replyOf({ ok: true, document, screened, freshness: result.freshness })
  } catch (error) {
    if (error instanceof FetchFailure) return replyOf({ ok: false, failure: error })
    throw error
  }
}

/** A member of a key set, as a receiver with this policy sees it. */
export interface PublishedKey {
  /** `null` if it is not a string. */
  readonly kid: string | null
  /** Only for keys of the core. */
  readonly kind?: 'dynamic' | 'static'
  /** The size of the modulus; absent if there is none. */
  readonly bits?: number
  /** Whether it may verify tokens under this policy. */
  readonly usable: boolean
  readonly reason?: UnusableReason
}

/** Why a key verifies no token under this policy. */
type UnusableReason = SkipReason | 'static_key_refused' | 'key_denied'

const MAX_SHOWN_LENGTH = 256

/** Returns the members of a key set's document in their order. */
export function publishedKeys(
  document: unknown,
  { keys, skipped }: UsableKeys,
  policy: Policy,
): PublishedKey[] {
  const members = isObject(document) && Array.isArray(document['keys']) ? document['keys'] : []
  // `skipped` has the order of the document.
  const reasons = skipped.values()
  return members.map((member: unknown): PublishedKey => {
    const fields = isObject(member) ? member : {}
    const kid = typeof fields['kid'] === 'string' ? fields['kid'] : null
    const isInKeySet = kid !== null && keys.has(kid)
    const reason = isInKeySet ? policyReason(kid, policy) : reasons.next().value?.reason
    const bits = modulusBits(fields)
    return {
      kid: kid?.slice(0, MAX_SHOWN_LENGTH) ?? null,
      ...(policy.tokens.kind === 'service' && { kind: keyKind(kid) }),
      ...(bits !== undefined && { bits }),
      usable: reason === undefined,
      ...(reason !== undefined && { reason }),
    }
  })
}

const keyKind = (kid: string | null): 'dynamic' | 'static' =>
  kid !== null && isStaticKeyId(kid) ? 'static' : 'dynamic'

function policyReason(kid: string, policy: Policy): UnusableReason | undefined {
  if (refusesStaticKey(kid, policy)) return 'static_key_refused'
  return policy.denied.keys.has(kid) ? 'key_denied' : undefined
}

function modulusBits({ kty, n }: Record<string, unknown>): number | undefined {
  if (kty !== 'RSA' || typeof n !== 'string') return undefined
  const hex = Buffer.from(n, 'base64url').toString('hex')
  return hex === '' ? undefined : BigInt(`0x${hex}`).toString(2).length
}
