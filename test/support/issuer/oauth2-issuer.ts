import { generateKeyPairSync } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type JWK } from 'oidc-provider'

export const CLIENT = 'billing'
const SECRET = 'a-secret-of-the-test-of-more-than-32-bytes'
export const AUDIENCE = 'https://orders.example.com'

/** A real OAuth 2.0 issuer (`oidc-provider`), whose clients get tokens by client credentials. */
export interface OAuth2Issuer {
  readonly url: string
  readonly jwksUri: string
  /** An access token of RFC 9068 for `AUDIENCE`. */
  token(scope: string): Promise<string>
  /** Signs with a new key; the earlier ones stay published. */
  rotate(): void
  close(): Promise<void>
}

export async function startOAuth2Issuer(): Promise<OAuth2Issuer> {
  let listener: RequestListener = (_, response) => void response.writeHead(503).end()
  const server = createServer((request, response) => listener(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const keys: JWK[] = []
  const rotate = (): void => {
    keys.unshift(newKey(`key-${keys.length + 1}`))
    listener = providerOf(url, keys).callback()
  }
  rotate()
  return {
    url,
    jwksUri: `${url}/jwks`,
    rotate,
    async token(scope) {
      const response = await fetch(`${url}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${CLIENT}:${SECRET}`)}` },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          resource: AUDIENCE,
          scope,
        }),
      })
      const body = (await response.json()) as { access_token?: string }
      if (body.access_token === undefined) throw new Error(JSON.stringify(body))
      return body.access_token
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function newKey(kid: string): JWK {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' } as JWK
}

const SCOPE = 'orders:read orders:write'

const providerOf = (issuer: string, keys: readonly JWK[]): Provider =>
  new Provider(issuer, {
    jwks: { keys: [...keys] },
    clients: [
      {
        client_id: CLIENT,
        client_secret: SECRET,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: SCOPE.split(' '),
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
