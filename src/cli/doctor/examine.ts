import { Unavailable } from '../../base/decision/unavailable.js'
import type { KeySource } from '../../verification/key-set/key-set.js'
import type { Policy } from '../../verification/policy/policy.js'
import type { Findings } from '../output/finding-lines.js'
import { findingsOn, type KeySetFacts } from './key-set-findings.js'
import { publishedKeys } from './published-key.js'
import { type KeySetReply, type ObservedResponse, requestKeySet } from './request-key-set.js'
import { tlsHandshake } from './tls-handshake.js'
import { checkToken, type TokenVerdict } from './token-verdict.js'

export interface Examination extends KeySetFacts {
  readonly findings: Findings
  readonly verdict: TokenVerdict | undefined
}

/** Fetches the key set of a policy, examines the answer, and checks the token with its keys. */
export async function examine(policy: Policy, token: string | undefined): Promise<Examination> {
  if (policy.keySet.kind !== 'own') throw new TypeError('a policy of JSON has no shared key set')
  const { jwksUri } = policy.keySet
  const isTls = new URL(jwksUri).protocol === 'https:'
  const [answer, tls] = await Promise.all([
    requestKeySet(jwksUri),
    isTls ? tlsHandshake(jwksUri) : undefined,
  ])
  const nowMs = Date.now()
  const { outcome, response } = answer
  const facts = {
    answer,
    tls,
    policy,
    nowMs,
    clockOffsetSeconds: response && clockOffset(response),
    keys: outcome.ok ? publishedKeys(outcome.document, outcome.screened, { policy, nowMs }) : [],
  }
  const verdict =
    token === undefined ? undefined : await checkToken(token, policy, sourceOf(answer))
  return { ...facts, findings: findingsOn(facts), verdict }
}

/** A key source with the fetched keys, so that none is fetched again. */
function sourceOf({ outcome }: KeySetReply): KeySource {
  const keys = outcome.ok ? outcome.screened.keys : undefined
  return {
    current: (kid) => keys?.get(kid),
    async find(kid) {
      if (keys === undefined || keys.size === 0) throw new Unavailable('key_set', 'not fetched')
      return keys.get(kid)
    },
  }
}

/** `Date` counts whole seconds. */
const DATE_RESOLUTION_MS = 1000

/**
 * Returns how many seconds a server's clock is at least ahead of ours by its `Date` header;
 * negative if it is behind. Returns 0 if the length of the exchange and whole seconds may explain
 * the difference, and `undefined` without a readable `Date`.
 */
export function clockOffset({
  headers,
  requestedAt: askedAt,
  answeredAt,
}: Pick<ObservedResponse, 'headers' | 'requestedAt' | 'answeredAt'>): number | undefined {
  const date = Date.parse(headers.get('date') ?? '')
  if (Number.isNaN(date)) return undefined
  // A cache stored the response, with its `Date`, for this long.
  const age = Number(headers.get('age') ?? 0)
  const ageMs = Number.isSafeInteger(age) && age > 0 ? age * 1000 : 0
  const earliest = date + ageMs
  const latest = earliest + DATE_RESOLUTION_MS + (ageMs === 0 ? 0 : DATE_RESOLUTION_MS)
  if (earliest > answeredAt) return Math.ceil((earliest - answeredAt) / 1000)
  return latest < askedAt ? -Math.ceil((askedAt - latest) / 1000) : 0
}
