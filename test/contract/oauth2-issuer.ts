import { createHash, randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import Provider, { type JWK } from 'oidc-provider'
import { takeKey } from '../support/issuer/spare-keys.js'
import { serve } from '../support/receiver/serve.js'

export const CLIENT = 'billing'
const SECRET = 'a-secret-of-the-test-of-more-than-32-bytes'
export const AUDIENCE = 'https://orders.example.com'

/** The user who signs in; not a client. */
export const USER = 'user-7'

/** A real OAuth 2.0 issuer (`oidc-provider`), whose client gets tokens for itself and for a user. */
export interface OAuth2Issuer {
  readonly url: string
  readonly jwksUri: string
  /** An access token of RFC 9068 for `AUDIENCE`. */
  token(scope: string): Promise<string>
  /** Signs a user in by the authorization code flow of the same client; the nonce is in the ID token. */
  signIn(nonce?: string): Promise<{ idToken: string; accessToken: string }>
  /** Signs with a new key; the earlier ones stay published. */
  rotate(): void
  close(): Promise<void>
}

export async function startOAuth2Issuer(): Promise<OAuth2Issuer> {
  let listener: RequestListener = (_, response) => void response.writeHead(503).end()
  const { url, close } = await serve((request, response) => listener(request, response))
  const keys: JWK[] = []
  const rotate = (): void => {
    keys.unshift(newKey(`key-${keys.length + 1}`))
    const provider = providerOf(url, keys)
    const answer = provider.callback()
    listener = (request, response) => {
      if (request.url?.startsWith(INTERACTION) !== true) return answer(request, response)
      return provider.interactionFinished(request, response, { login: { accountId: USER } })
    }
  }
  rotate()
  return {
    url,
    jwksUri: `${url}/jwks`,
    rotate,
    async token(scope) {
      const grant = { grant_type: 'client_credentials', resource: AUDIENCE, scope }
      return (await tokensOf(url, grant)).access_token
    },
    async signIn(nonce) {
      const { code, verifier } = await authorize(url, nonce)
      const grant = { grant_type: 'authorization_code', code, code_verifier: verifier }
      const tokens = await tokensOf(url, { ...grant, redirect_uri: REDIRECT, resource: AUDIENCE })
      return { idToken: tokens.id_token, accessToken: tokens.access_token }
    },
    close,
  }
}

const newKey = (kid: string): JWK =>
  ({ ...takeKey(kid).privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }) as JWK

async function tokensOf(url: string, grant: Record<string, string>) {
  const response = await fetch(`${url}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${CLIENT}:${SECRET}`)}` },
    body: new URLSearchParams(grant),
  })
  const body = (await response.json()) as { access_token: string; id_token: string }
  if (body.access_token === undefined) throw new Error(JSON.stringify(body))
  return body
}

const REDIRECT = 'https://billing.example.com/signed-in'
const INTERACTION = '/interaction/'

/** Follows the redirects with cookies, as a browser does, until one leads to the client with the code. */
async function authorize(url: string, nonce: string | undefined) {
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    client_id: CLIENT,
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: 'openid orders:read',
    resource: AUDIENCE,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...(nonce !== undefined && { nonce }),
  })
  const cookies = new Map<string, string>()
  let address = `${url}/auth?${query}`
  while (address.startsWith(url)) {
    const cookie = Array.from(cookies, (pair) => pair.join('=')).join('; ')
    const response = await fetch(address, { redirect: 'manual', headers: { cookie } })
    for (const set of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (set.split(';', 1)[0] ?? '').split('=')
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(await response.text())
    address = new URL(location, url).href
  }
  return { code: new URL(address).searchParams.get('code') ?? '', verifier }
}

const SCOPE = 'orders:read orders:write'

const providerOf = (issuer: string, keys: readonly JWK[]): Provider =>
  new Provider(issuer, {
    jwks: { keys: [...keys] },
    clients: [
      {
        client_id: CLIENT,
        client_secret: SECRET,
        grant_types: ['client_credentials', 'authorization_code'],
        redirect_uris: [REDIRECT],
        response_types: ['code'],
      },
    ],
    scopes: ['openid', ...SCOPE.split(' ')],
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_, { uid }) => `${INTERACTION}${uid}` },
    // Grants everything without a consent page.
    async loadExistingGrant({ oidc: { client, provider, session } }) {
      const grant = new provider.Grant({
        clientId: client?.clientId,
        accountId: session?.accountId,
      })
      grant.addOIDCScope(`openid ${SCOPE}`)
      grant.addResourceScope(AUDIENCE, SCOPE)
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: SCOPE,
          audience: AUDIENCE,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
