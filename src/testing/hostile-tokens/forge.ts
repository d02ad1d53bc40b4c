import { randomUUID } from 'node:crypto'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { compactToken, type Part, rs256, type Signer } from '../issuer/compact-token.js'
import { keyRingOf, type TestIssuer } from '../issuer/issuer.js'
import { createSigningKey, type SigningKey } from '../issuer/issuer-keys.js'

type Members = Readonly<Record<string, unknown>>

/** Makes tokens that an issuer would never issue, with its keys or an attacker's. */
export interface Forge {
  /** Whether the tokens are OAuth 2.0 access tokens. */
  readonly isOAuth2: boolean
  readonly key: SigningKey
  readonly staticKey: SigningKey
  readonly attacker: SigningKey
  /** The claims of a valid token. */
  readonly claims: Members
  readonly header: Members
  /** A valid token, always the same. */
  readonly good: string
  /** A token of these parts, with a correct signature unless `signer` is given. */
  token(parts: { header?: Part; payload?: Part; signer?: Signer }): string
  /** A correctly signed token in which these claims replace the valid ones. */
  withClaims(claims: Members): string
  /** A correctly signed token in which these members replace those of the header. */
  withHeader(header: Members): string
  /** A correctly signed token in which raw JSON text replaces one claim. */
  withRawClaim(name: string, json: string): string
}

/** Shared by all forges, because making an RSA key is slow. */
let attacker: SigningKey | undefined

export function createForge(issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>): Forge {
  const ring = keyRingOf(issuer)
  const key = ring.current()
  attacker ??= createSigningKey(`d-${randomUUID()}`)
  const good = issuer.token()
  const [header, claims] = good.split('.', 2).map(decode) as [Members, Members]
  const token: Forge['token'] = (parts) =>
    compactToken(
      parts.header ?? header,
      parts.payload ?? claims,
      parts.signer ?? rs256(key.privateKey),
    )
  return {
    isOAuth2: issuer.policy().tokens === 'oauth2',
    key,
    staticKey: ring.staticKey,
    attacker,
    claims,
    header,
    good,
    token,
    withClaims: (changed) => token({ payload: { ...claims, ...changed } }),
    withHeader: (changed) => token({ header: { ...header, ...changed } }),
    withRawClaim(name, json) {
      const rest = JSON.stringify({ ...claims, [name]: undefined }).slice(1, -1)
      return token({ payload: `{${rest},${JSON.stringify(name)}:${json}}` })
    },
  }
}

function decode(segment: string): Members {
  return JSON.parse(Buffer.from(segment, 'base64url').toString())
}
