import { generateKeyPair, randomBytes, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { promisify } from 'node:util'

const KEY_ID = `d-${Date.now()}`
const LIFETIME_SECONDS = 3600

const base64url = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Mints service tokens and publishes their key, as the identity core does. */
export async function startIssuer() {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'RS256', use: 'sig' }
  const keySet = JSON.stringify({ keys: [jwk] })
  const server = createServer((_request, response) => {
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Cache-Control': 'max-age=3600, must-revalidate',
    })
    response.end(keySet)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${server.address().port}`

  const signAsync = promisify(sign)

  async function mintOne(typ, payload) {
    const input = `${base64url({ kid: KEY_ID, typ, alg: 'RS256' })}.${base64url(payload)}`
    const signature = await signAsync('sha256', Buffer.from(input), privateKey)
    return `${input}.${signature.toString('base64url')}`
  }

  async function mint(count, typ, claimsOf) {
    const tokens = []
    while (tokens.length < count) {
      const batch = Math.min(64, count - tokens.length)
      const mintNext = () => mintOne(typ, claimsOf(issuer))
      tokens.push(...(await Promise.all(Array.from({ length: batch }, mintNext))))
    }
    return tokens
  }

  return {
    issuer,
    mint: (count, claimsOf = claims) => mint(count, 'JWT', claimsOf),
    /** Access tokens of OAuth 2.0, with as many claims. */
    mintOAuth2: (count) => mint(count, 'at+jwt', oauth2Claims),
    /** Of good form, each with a random key id of the core's kind; never verified by anybody. */
    strangers(count) {
      const payload = base64url(claims(issuer))
      const signature = randomBytes(256).toString('base64url')
      return Array.from({ length: count }, () => {
        const kid = `d-${randomBytes(8).toString('hex')}`
        return `${base64url({ kid, typ: 'JWT', alg: 'RS256' })}.${payload}.${signature}`
      })
    },
    stop: () => server.close(),
  }
}

export function claims(issuer) {
  const now = Math.floor(Date.now() / 1000)
  return {
    iss: issuer,
    sub: 'billing',
    aud: 'orders',
    source: 'microservice',
    token_type: 'service-access',
    permissions: ['orders:read', 'orders:write'],
    jti: randomUUID(),
    iat: now,
    exp: now + LIFETIME_SECONDS,
  }
}

function oauth2Claims(issuer) {
  const { source, token_type, permissions, ...others } = claims(issuer)
  return { ...others, client_id: 'billing', azp: 'billing', scope: permissions.join(' ') }
}
