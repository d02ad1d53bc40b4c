import { sign } from 'node:crypto'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import {
  createProofKey,
  type ProofKey,
  proofHeaderOf,
  proofPayloadOf,
} from '../issuer/bound-token.js'
import { es256, type Signer } from '../issuer/compact-token.js'
import { keyRingOf, type TestIssuer } from '../issuer/issuer.js'
import { type Forge, forgeOf } from './forge.js'

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

/** The request of the catalogue. */
const METHOD = 'POST'
export const BASE_URL = 'https://orders.test'
export const PATH = '/orders/4711'
export const URL_OF_REQUEST = `${BASE_URL}${PATH}`

/** Makes proofs that no honest caller would make, and requests with them. */
export interface ProofForge extends Forge<HostileProof> {
  readonly key: ProofKey
  readonly attacker: ProofKey
  /** Signs with the RSA key of the issuer. */
  readonly issuerSigner: Signer
  /** The token that is bound to the key. */
  readonly boundToken: string
  readonly unboundToken: string
  /** A valid proof with a new `jti`, for another URL if one is given. */
  proofFor(url?: string): string
  /** A request with these proofs and the token. */
  headersWith(...proofs: readonly string[]): readonly string[]
}

export function createProofForge(issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>): ProofForge {
  const rsaKey = keyRingOf(issuer).current().privateKey
  const key = createProofKey()
  const token = issuer.token({ cnf: { jkt: key.thumbprint } })
  const { clock = Date.now } = issuer.policy()
  const now = clock() / 1000
  const claimsFor = (url: string) => proofPayloadOf({ token, method: METHOD, url, now })
  const headersWith: ProofForge['headersWith'] = (...proofs) => [
    ...['Authorization', `DPoP ${token}`],
    ...proofs.flatMap((proof) => ['DPoP', proof]),
  ]
  const forge = forgeOf<HostileProof>({
    header: proofHeaderOf(key),
    claims: () => claimsFor(URL_OF_REQUEST),
    signer: es256(key.privateKey),
    caseOf: (name, why, proof) => ({
      ...{ name, why, method: METHOD, target: PATH },
      headers: headersWith(proof),
      expect: 401,
    }),
  })
  return {
    ...forge,
    key,
    attacker: createProofKey(),
    issuerSigner: (input) => sign('sha256', input, rsaKey),
    boundToken: token,
    unboundToken: issuer.token(),
    headersWith,
    proofFor: (url = URL_OF_REQUEST) => forge.token({ payload: claimsFor(url) }),
  }
}
