import { generateKeyPair, generateKeyPairSync, hash, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { promisify } from 'node:util'

const KEY_ID = `d-${Date.now()}`
const LIFETIME_SECONDS = 3600
const AT_ONCE = 64

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Mints service tokens on all threads, and publishes their key, as the identity core does. */
export async function startIssuer() {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'RS256', use: 'sig' }
  const keySet = JSON.stringify({ keys: [jwk] })
  const server = createServer((_request, response) => {
    const headers = {
      'Content-Type': 'application/json',
      'Cache-Control': 'max-age=3600, must-revalidate',
    }
    response.writeHead(200, headers).end(keySet)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}`
  const header = encode({ kid: KEY_ID, typ: 'JWT', alg: 'RS256' })
  const signAsync = promisify(sign)

  async function mintOne(moreClaims) {
    const input = `${header}.${encode({ ...claims(url), ...moreClaims })}`
    const signature = await signAsync('sha256', Buffer.from(input), privateKey)
    return `${input}.${signature.toString('base64url')}`
  }

  return {
    url,
    /** As many tokens, each with the claims that `moreClaimsOf` adds for its number. */
    async mint(count, moreClaimsOf = () => ({})) {
      const tokens = []
      while (tokens.length < count) {
        const batch = Array.from({ length: Math.min(AT_ONCE, count - tokens.length) }, (_, index) =>
          mintOne(moreClaimsOf(tokens.length + index)),
        )
        tokens.push(...(await Promise.all(batch)))
      }
      return tokens
    },
    stop: () => server.close(),
  }
}

function claims(iss) {
  const iat = Math.floor(Date.now() / 1000)
  return {
    iss,
    sub: 'billing',
    aud: 'orders',
    source: 'microservice',
    token_type: 'service-access',
    permissions: ['orders:read', 'orders:write'],
    jti: randomUUID(),
    iat,
    exp: iat + LIFETIME_SECONDS,
  }
}

/** A key of a caller: its thumbprint (RFC 7638), and what its proofs are made with. */
export function createProofKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { crv, kty, x, y } = publicKey.export({ format: 'jwk' })
  const jwk = { crv, kty, x, y }
  return {
    jkt: hash('sha256', JSON.stringify(jwk), 'base64url'),
    header: encode({ typ: 'dpop+jwt', alg: 'ES256', jwk }),
    signing: { key: privateKey, dsaEncoding: 'ieee-p1363' },
  }
}

/** A DPoP proof of the key for one request with this token (RFC 9449, section 4.2). */
export function createProof({ header, signing }, token, { method, url }) {
  const iat = Math.floor(Date.now() / 1000)
  const ath = hash('sha256', token, 'base64url')
  const input = `${header}.${encode({ jti: randomUUID(), htm: method, htu: url, iat, ath })}`
  return `${input}.${sign('sha256', Buffer.from(input), signing).toString('base64url')}`
}
