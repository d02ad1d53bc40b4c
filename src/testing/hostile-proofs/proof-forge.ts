import {
  createProofKey,
  type ProofKey,
  proofHeaderOf,
  proofPayloadOf,
} from '../issuer/bound-token.js'
import { compactToken, es256, type Part, type Signer } from '../issuer/compact-token.js'
import type { HostileProof } from './hostile-proof.js'

type Members = Readonly<Record<string, unknown>>

/** Makes proofs that no honest caller would make, and requests with them. */
export interface ProofForge {
  readonly key: ProofKey
  readonly attacker: ProofKey
  readonly token: string
  readonly unboundToken: string
  readonly method: string
  readonly baseUrl: string
  readonly path: string
  readonly url: string
  /** The header and payload of a valid proof. */
  readonly header: Members
  readonly payload: Members
  /** A proof of these parts, signed correctly unless `signer` is given. */
  proof(parts?: { header?: Part; payload?: Part; signer?: Signer }): string
  withHeader(changed: Members): string
  withPayload(changed: Members): string
  /** A valid proof with a new `jti`, for another URL if one is given. */
  proofFor(url?: string): string
  request(name: string, overrides: Partial<HostileProof>): HostileProof
}

interface ForgeFacts {
  readonly token: string
  readonly unboundToken: string
  readonly key: ProofKey
  readonly method: string
  readonly baseUrl: string
  readonly path: string
  readonly now: number
}

export function createProofForge({ unboundToken, key, now, ...facts }: ForgeFacts): ProofForge {
  const { token, method, baseUrl, path } = facts
  const url = `${baseUrl}${path}`
  const header = proofHeaderOf(key)
  const newPayload = (address: string) => proofPayloadOf({ token, method, url: address, now })
  const proof: ProofForge['proof'] = (parts = {}) =>
    compactToken(
      parts.header ?? header,
      parts.payload ?? newPayload(url),
      parts.signer ?? es256(key.privateKey),
    )
  return {
    ...facts,
    key,
    attacker: createProofKey(),
    unboundToken,
    url,
    header,
    payload: newPayload(url),
    proof,
    withHeader: (changed) => proof({ header: { ...header, ...changed } }),
    withPayload: (changed) => proof({ payload: { ...newPayload(url), ...changed } }),
    proofFor: (address = url) => proof({ payload: newPayload(address) }),
    request: (name, overrides) => ({
      name,
      why: 'A proof is one field of at most 4 KB with a JWS',
      method,
      target: path,
      headers: ['Authorization', `DPoP ${token}`, 'DPoP', proof()],
      expect: 401,
      ...overrides,
    }),
  }
}

/** The headers of a request with a bound token and a proof. */
export const withProof = (
  { token }: Pick<ProofForge, 'token'>,
  proof: string,
): readonly string[] => ['Authorization', `DPoP ${token}`, 'DPoP', proof]

/** A hostile proof, and its name. */
export type Draft = readonly [name: string, proof: string]

export const group = (forge: ProofForge, why: string, drafts: readonly Draft[]): HostileProof[] =>
  drafts.map(([name, proof]) => forge.request(name, { why, headers: withProof(forge, proof) }))
