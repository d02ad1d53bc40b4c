import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { listen } from '../listen.js'

const LIFETIME_SECONDS = 3600

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/**
 * Stands in for the core where people sign in: it publishes a key, and makes the token of a session as a core does.
 * The backend SDK verifies such a token by the published key alone.
 */
export async function startSignIn(issuer: string) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const kid = `d-${Date.now()}`
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }
  const { url, close } = await listen((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [jwk] }))
  })

  function sessionOf(user: string): string {
    const iat = Math.floor(Date.now() / 1000)
    const claims = {
      sub: user,
      rsub: user,
      tId: 'public',
      iss: `${issuer}/auth`,
      iat,
      exp: iat + LIFETIME_SECONDS,
      sessionHandle: randomUUID(),
      refreshTokenHash1: randomUUID(),
      parentRefreshTokenHash1: null,
      antiCsrfToken: null,
    }
    const signed = `${encode({ kid, typ: 'JWT', version: '5', alg: 'RS256' })}.${encode(claims)}`
    return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`
  }
  return { url, sessionOf, close }
}
