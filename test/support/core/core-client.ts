import { randomUUID } from 'node:crypto'
import { knowToken } from '../secret-search/index.js'
import type { IdentityCore } from './identity-core/identity-core.js'

/** Sends a body to a route of the core, and returns the answer: a text where it is no JSON. */
export async function askCore(
  { url, apiKey }: Pick<IdentityCore, 'url' | 'apiKey'>,
  path: string,
  body: object,
  method = 'POST',
  // biome-ignore lint/suspicious/noExplicitAny: what is compared with what a test expects.
): Promise<{ status: number; body: any }> {
  const headers = { 'api-key': apiKey, 'content-type': 'application/json; charset=utf-8' }
  const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) })
  const text = await response.text()
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
}

/** A token with this payload, for five minutes; fails when the core makes none. */
export async function mintedBy(core: IdentityCore, payload: object): Promise<string> {
  const terms = { useStaticSigningKey: false, algorithm: 'RS256', validity: 300 }
  const request = { ...terms, jwksDomain: core.issuer, payload }
  const { body } = await askCore(core, '/recipe/jwt', request)
  if (body.status !== 'OK') throw new Error(`the core answered ${JSON.stringify(body)}`)
  return body.jwt
}

/** A service's token for orders, unless told otherwise, with a `jti` of its own. */
export function serviceTokenBy(
  core: IdentityCore,
  caller: string,
  claims: { permissions: readonly string[]; aud?: string },
): Promise<string> {
  const kind = { aud: 'orders', source: 'microservice', token_type: 'service-access' }
  return mintedBy(core, { ...kind, sub: caller, jti: randomUUID(), ...claims })
}

/** The token of a new session, as the core makes it for the backend SDK. */
export async function sessionOf(user: string, core: IdentityCore): Promise<string> {
  const { body } = await askCore(core, '/recipe/session', {
    userId: user,
    enableAntiCsrf: false,
    userDataInJWT: { iss: `${core.issuer}/auth` },
    userDataInDatabase: {},
  })
  const { token } = body.accessToken
  knowToken(token)
  return token
}
