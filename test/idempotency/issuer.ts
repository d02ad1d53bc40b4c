import { type KeySet, remoteKeySet } from 'express-service-auth'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

export interface TokenOptions {
  readonly sub?: string
  readonly issuer?: string
  readonly audience?: string
}

export interface Issuer {
  readonly keySet: KeySet
  /** A fresh token, good for `policy`, and by default billing's. */
  token(options?: TokenOptions): Promise<string>
}

const ISSUER = 'https://api.example.com'
const AUDIENCE = 'orders'

const KID = 'd-1'
let made: Promise<Issuer> | undefined

/** One signing key for all tests of a file; the key set answers without a network. */
export function issuer(): Promise<Issuer> {
  made ??= makeIssuer()
  return made
}

async function makeIssuer(): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid: KID, alg: 'RS256', use: 'sig' }
  const document = JSON.stringify({ keys: [jwk] })
  const keySet = remoteKeySet({
    jwksUri: 'http://127.0.0.1/jwks.json',
    fetch: async () => new Response(document),
  })
  return {
    keySet,
    token({ sub = 'billing', issuer: iss = ISSUER, audience = AUDIENCE } = {}) {
      const claims = {
        source: 'microservice',
        token_type: 'service-access',
        permissions: ['orders:write'],
      }
      return new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid: KID })
        .setIssuer(iss)
        .setAudience(audience)
        .setSubject(sub)
        .setJti(crypto.randomUUID())
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(privateKey)
    },
  }
}

/** What `serviceAuth` demands of this issuer's tokens. */
export function policyOf({ keySet }: Issuer, over: { issuer?: string; audience?: string } = {}) {
  return {
    issuer: ISSUER,
    audience: AUDIENCE,
    source: 'microservice',
    tokenType: 'service-access',
    callers: ['billing', 'reporting'],
    keySet,
    ...over,
  }
}
