import type {
  MultiIssuerAuth,
  ServiceAuth,
  ServiceAuthPolicy,
  SingleUseStore,
} from 'express-service-auth'
import { afterAll, beforeEach } from 'vitest'
import {
  createProofKey,
  proofHeaderOf,
  proofPayloadOf,
} from '../../../src/testing/issuer/bound-token.js'
import { compactToken, es256 } from '../../../src/testing/issuer/compact-token.js'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { collectEvents } from '../../support/observe/channel-events.js'
import { authFor } from '../../support/receiver/receiver.js'
import { ENTRIES, type Entry } from '../entries.js'

export const START = 1_800_000_000_000
let now = START
export const clock = (): number => now
/** Sets the clock of the issuer and of all receivers, which shows `START` at the start of each test. */
export const setClock = (ms: number): void => {
  now = ms
}
beforeEach(() => setClock(START))

export const issuer = await createTestIssuer({ clock })
afterAll(() => issuer.close())

export const BASE_URL = 'https://orders.test'
export const DPOP = { dpop: { baseUrls: [BASE_URL] } }
export const INVALID =
  'Bearer realm="service", error="invalid_token", DPoP algs="ES256", error="invalid_token"'

export const bearer = (token: string): string[] => ['Authorization', `Bearer ${token}`]

/** A token that is bound to a key, and proofs of that key for `GET https://orders.test/`. */
export function bound(claims: object = {}, { key = createProofKey(), of = issuer } = {}) {
  const token = of.token({ cnf: { jkt: key.thumbprint }, ...claims })
  const proof = (payload: object = {}, header: object = {}): string => {
    const good = proofPayloadOf({ token, method: 'GET', url: `${BASE_URL}/`, now: now / 1000 })
    const headerOfProof = { ...proofHeaderOf(key), ...header }
    return compactToken(headerOfProof, { ...good, ...payload }, es256(key.privateKey))
  }
  return {
    key,
    token,
    /** A new proof, with these members in place of the good ones. */
    proof,
    /** The headers of a request with the token and such a proof. */
    headers: (payload?: object, header?: object): string[] => [
      ...['Authorization', `DPoP ${token}`],
      ...['DPoP', proof(payload, header)],
    ],
  }
}

interface Sent {
  readonly method?: string
  readonly target?: string
  readonly headers: readonly string[]
}

export const linesOf = (headers: readonly string[]): string[] =>
  headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []))

/** Status and challenge of an answer. */
export function answerOf(bytes: string) {
  const fields = Array.from(bytes.matchAll(/^WWW-Authenticate: (.*)\r$/gim), ([, value]) => value)
  const challenge = fields.length < 2 ? fields[0] : fields.join(' and ')
  return { status: Number(bytes.slice(9, 12)), challenge }
}

/** That Express 4 hands on the same method, target and headers is shown behind other middlewares. */
export const WAYS = ENTRIES.filter(({ entry }) => ['Express 5', 'authenticate'].includes(entry))

/** A way to ask an entry, with the event and the identity of each answer. */
export async function openAuth(
  { open }: Entry,
  auth: ServiceAuth | MultiIssuerAuth,
  singleUse?: SingleUseStore,
) {
  const events = collectEvents('decision')
  await auth.ready()
  const { raw, accepted } = await open(auth, { singleUse })
  return async ({ method = 'GET', target = '/', headers }: Sent) => {
    const answer = answerOf(await raw({ method, path: target, headers: linesOf(headers) }))
    const event: Record<string, unknown> = { ...events.at(-1) }
    return { ...answer, event, confirmation: accepted.at(-1)?.confirmation }
  }
}

export function open(
  entry: Entry,
  policy: Partial<ServiceAuthPolicy> = {},
  store?: SingleUseStore,
) {
  const auth = authFor(issuer.policy({ senderConstraint: DPOP, ...policy }))
  return openAuth(entry, auth, store)
}
