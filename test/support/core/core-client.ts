import { randomUUID } from 'node:crypto'
import { knowToken } from '../secret-search/index.js'
import type { IdentityCore } from './identity-core/identity-core.js'

export const API_KEY = 'the-key-of-this-test'

interface Reply {
  readonly status: number
  readonly type: string | null
  readonly text: string
}

/** Sends a body to `POST /recipe/jwt`, with the right API key unless told otherwise. */
async function postMint(
  url: string,
  body: string | object,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await fetch(`${url}/recipe/jwt`, {
    method: 'POST',
    headers: { 'api-key': API_KEY, rid: 'jwt', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const type = response.headers.get('content-type')
  return { status: response.status, type, text: await response.text() }
}

/** A minted token; fails when the core makes none. */
export async function mintedBy(url: string, change: object = {}): Promise<string> {
  const { text } = await postMint(url, { ...mintBody(), ...change })
  const { status, jwt } = JSON.parse(text) as { status: string; jwt: string }
  if (status !== 'OK') throw new Error(`the core answered ${text}`)
  return jwt
}

type Addresses = Pick<IdentityCore, 'url' | 'issuer'>

/** A service's token for orders, unless told otherwise, with a `jti` of its own. */
export function serviceTokenBy(
  core: Addresses,
  caller: string,
  claims: { permissions: readonly string[]; aud?: string },
): Promise<string> {
  const kind = { aud: 'orders', source: 'microservice', token_type: 'service-access' }
  const payload = { ...kind, sub: caller, jti: randomUUID(), ...claims }
  return mintedBy(core.url, { jwksDomain: core.issuer, payload })
}

/** The token of a new session, as the core makes it for the backend SDK. */
export async function sessionOf(user: string, core: Addresses): Promise<string> {
  const response = await fetch(`${core.url}/recipe/session`, {
    method: 'POST',
    headers: { 'api-key': API_KEY, rid: 'session' },
    body: JSON.stringify({
      userId: user,
      enableAntiCsrf: false,
      userDataInJWT: { iss: `${core.issuer}/auth` },
      userDataInDatabase: {},
    }),
  })
  const { accessToken } = (await response.json()) as { accessToken: { token: string } }
  knowToken(accessToken.token)
  return accessToken.token
}

function mintBody() {
  return {
    payload: { sub: 'billing' } as Record<string, unknown>,
    useStaticSigningKey: false as unknown,
    algorithm: 'RS256' as unknown,
    jwksDomain: 'https://api.example.com' as unknown,
    validity: 300 as unknown,
  }
}

export async function fetchKeySet(url: string) {
  const response = await fetch(`${url}/.well-known/jwks.json`)
  const { keys } = (await response.json()) as { keys: Record<string, string>[] }
  const kids = keys.map(({ kid = '' }) => kid)
  return { keys, kids, cacheControl: response.headers.get('cache-control') }
}

/** Sends a body to `POST /recipe/signin`. An error has a text for its body. */
export async function signIn(
  { url, apiKey }: { readonly url: string; readonly apiKey: string },
  body: string | object,
  // biome-ignore lint/suspicious/noExplicitAny: what is compared with what a test expects.
): Promise<{ status: number; body: any }> {
  const response = await fetch(`${url}/recipe/signin`, {
    method: 'POST',
    headers: { 'api-key': apiKey, 'content-type': 'application/json; charset=utf-8' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const isText = response.status !== 200
  return { status: response.status, body: isText ? await response.text() : await response.json() }
}
