import { randomUUID } from 'node:crypto'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import {
  createProofKey,
  type ProofKey,
  proofHeaderOf,
  proofPayloadOf,
} from '../issuer/bound-token.js'
import { compactToken, es256, type Part, rs256, type Signer } from '../issuer/compact-token.js'
import { keyRingOf, type TestIssuer } from '../issuer/issuer.js'
import { createSigningKey, type SigningKey } from '../issuer/issuer-keys.js'

/** A value of the `Authorization` header that every receiver must refuse. */
export interface HostileToken {
  /** Unique in the catalogue. */
  readonly name: string
  /** Why it must be refused. */
  readonly why: string
  /** The value of the only `Authorization` header; within Node's default limits. */
  readonly authorization: string
  /** 403 if the token is valid but its caller is not approved, otherwise 401. */
  readonly expect: 401 | 403
  /** Of a token with an unknown key: a receiver looks for two such keys in 10 s, and may answer others with this. */
  readonly orElse?: 503
}

/** A request with a token that is bound to a key, and why a receiver must not accept it. */
export interface HostileProof {
  /** What is wrong with it. */
  readonly name: string
  /** The rule that it breaks. */
  readonly why: string
  /** The method of the request. */
  readonly method: string
  /** The request target, to send exactly so. */
  readonly target: string
  /** Names and values of the headers in turn, as `rawHeaders` of Node. */
  readonly headers: readonly string[]
  /**
   * Who must have accepted an earlier copy of the request: this receiver, or another instance of it. The route
   * has `requireSingleUse`, and the instances share its store.
   */
  readonly replays?: 'here' | 'elsewhere'
  /** The status of the refusal. */
  readonly expect: 401
}

type Members = Readonly<Record<string, unknown>>
/** The values of a member: in a list, or by the rest of their names. */
type Values = readonly unknown[] | Members
/** A JWS, and the name of its case. */
export type Draft = readonly [name: string, jws: string]
/** JWSs by the names of their cases, in a list or by name. */
export type Drafts = readonly Draft[] | Readonly<Record<string, string>>

/** Makes JWSs that nobody honest would make, and cases of them. */
interface Forge<Case> {
  /** The header and the claims of a valid one. */
  readonly header: Members
  readonly claims: Members
  /** A JWS of these parts, with a correct signature unless `signer` is given. */
  token(parts?: { header?: Part; payload?: Part; signer?: Signer }): string
  /** A correctly signed one in which these members replace those of the header. */
  withHeader(header: Members): string
  /** A correctly signed one in which these claims replace the valid ones. */
  withClaims(claims: Members): string
  /** A correctly signed one in which raw JSON text replaces one claim. */
  withRawClaim(name: string, json: string): string
  /** One draft for each value of a member. `right` is not shown in their names, because it varies between runs. */
  headerDrafts(member: string, values: Values, right?: unknown): Draft[]
  claimDrafts(claim: string, values: Values, right?: unknown): Draft[]
  /** Cases that must be refused, by the reason. */
  groups(drafts: Readonly<Record<string, Drafts>>, changed?: Partial<Case>): Case[]
}

interface Model<Case> {
  readonly header: Members
  readonly claims: () => Members
  readonly signer: Signer
  readonly caseOf: (name: string, why: string, jws: string) => Case
}

function forgeOf<Case>({ header, claims, signer, caseOf }: Model<Case>): Forge<Case> {
  const token: Forge<Case>['token'] = (parts = {}) =>
    compactToken(parts.header ?? header, parts.payload ?? claims(), parts.signer ?? signer)
  const withHeader = (changed: Members) => token({ header: { ...header, ...changed } })
  const withClaims = (changed: Members) => token({ payload: { ...claims(), ...changed } })
  return {
    header,
    claims: claims(),
    token,
    withHeader,
    withClaims,
    withRawClaim(name, json) {
      const rest = JSON.stringify({ ...claims(), [name]: undefined }).slice(1, -1)
      return token({ payload: `{${rest},${JSON.stringify(name)}:${json}}` })
    },
    headerDrafts: (member, values, right) =>
      namedValues(member, values, right).map(([name, value]) => [
        name,
        withHeader({ [member]: value }),
      ]),
    claimDrafts: (claim, values, right) =>
      namedValues(claim, values, right).map(([name, value]) => [
        name,
        withClaims({ [claim]: value }),
      ]),
    groups: (drafts, changed) =>
      Object.entries(drafts).flatMap(([why, group]) =>
        (Array.isArray(group) ? group : Object.entries(group)).map(([name, jws]: Draft) => ({
          ...caseOf(name, why, jws),
          ...changed,
        })),
      ),
  }
}

function namedValues(member: string, values: Values, right: unknown): [string, unknown][] {
  if (Array.isArray(values)) return values.map((value) => [nameOf(member, value, right), value])
  return Object.entries(values).map(([name, value]) => [`${member} ${name}`, value])
}

const MAX_NAME_LENGTH = 100

/** Values that are no text, and the empty text. */
export const NO_TEXT: readonly unknown[] = [undefined, null, '', 0, 1, true, false, [], {}]

/** The name of a case. `(right)` replaces the correct value. */
export function nameOf(place: string, value: unknown, right?: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  const stable = typeof right === 'string' ? text.replaceAll(right, '(right)') : text
  return `${place} ${stable}`.slice(0, MAX_NAME_LENGTH)
}

/** Makes tokens that an issuer would never issue, with its keys or an attacker's. */
export interface TokenForge extends Forge<HostileToken> {
  /** Whether the tokens are OAuth 2.0 access tokens. */
  readonly isOAuth2: boolean
  readonly key: SigningKey
  readonly staticKey: SigningKey
  readonly attacker: SigningKey
  /** A valid token, always the same. */
  readonly good: string
}

/** Shared by all forges, because making an RSA key is slow. */
let attacker: SigningKey | undefined

export function createTokenForge(issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>): TokenForge {
  const ring = keyRingOf(issuer)
  const key = ring.current()
  attacker ??= createSigningKey(`d-${randomUUID()}`)
  const good = issuer.token()
  const [header = {}, claims = {}] = good.split('.', 2).map(decode)
  const forge = forgeOf<HostileToken>({
    header,
    claims: () => claims,
    signer: rs256(key.privateKey),
    caseOf: (name, why, token) => ({ name, why, authorization: `Bearer ${token}`, expect: 401 }),
  })
  const isOAuth2 = issuer.policy().tokens === 'oauth2'
  return { ...forge, isOAuth2, key, staticKey: ring.staticKey, attacker, good }
}

const decode = (segment: string): Members =>
  JSON.parse(Buffer.from(segment, 'base64url').toString())

/** Makes proofs that no honest caller would make, and requests with them. */
export interface ProofForge extends Forge<HostileProof>, Omit<ProofFacts, 'now'> {
  readonly attacker: ProofKey
  readonly url: string
  /** A valid proof with a new `jti`, for another URL if one is given. */
  proofFor(url?: string): string
  /** A request with these proofs and the token. */
  headersWith(...proofs: readonly string[]): readonly string[]
}

interface ProofFacts {
  readonly key: ProofKey
  /** The token that is bound to the key. */
  readonly boundToken: string
  readonly unboundToken: string
  readonly method: string
  readonly baseUrl: string
  readonly path: string
  /** Seconds since the epoch. */
  readonly now: number
}

export function createProofForge({ now, ...facts }: ProofFacts): ProofForge {
  const { key, boundToken: token, method, baseUrl, path } = facts
  const url = `${baseUrl}${path}`
  const claimsFor = (address: string) => proofPayloadOf({ token, method, url: address, now })
  const headersWith: ProofForge['headersWith'] = (...proofs) => [
    ...['Authorization', `DPoP ${token}`],
    ...proofs.flatMap((proof) => ['DPoP', proof]),
  ]
  const forge = forgeOf<HostileProof>({
    header: proofHeaderOf(key),
    claims: () => claimsFor(url),
    signer: es256(key.privateKey),
    caseOf: (name, why, proof) => ({
      ...{ name, why, method, target: path },
      headers: headersWith(proof),
      expect: 401,
    }),
  })
  return {
    ...facts,
    ...forge,
    attacker: createProofKey(),
    url,
    headersWith,
    proofFor: (address = url) => forge.token({ payload: claimsFor(address) }),
  }
}
