import { randomUUID } from 'node:crypto'
import { StartError } from '../start-error.js'

export interface TokenSourceOptions {
  /** The identity core; its address is the API domain, too. */
  readonly coreUrl: string
  readonly apiKey: string
  /** Who asks (`sub`) and for whom (`aud`). */
  readonly caller: string
  readonly audience: string
}

export interface TokenSource {
  /** A fresh token with these permissions. */
  mint(permissions: readonly string[]): Promise<string>
  /** Checks that the core answers and takes the API key; throws a `StartError` if not. */
  ready(): Promise<void>
}

/** The core's default is a hundred years. */
const VALIDITY_SECONDS = 300
const TIMEOUT_MS = 3000

/** Asks the identity core for tokens: a fixed schema of claims, short-lived, with a dynamic key. */
export function createTokenSource(options: TokenSourceOptions): TokenSource {
  const { coreUrl, apiKey, caller, audience } = options

  const ask = (path: string, request: RequestInit) =>
    fetch(`${coreUrl}${path}`, {
      ...request,
      headers: { 'api-key': apiKey, rid: 'jwt', 'content-type': 'application/json' },
      // A redirect would carry the API key elsewhere.
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })

  return {
    async mint(permissions) {
      const claims = { sub: caller, aud: audience, permissions, jti: randomUUID() }
      const body = JSON.stringify({
        payload: { source: 'microservice', token_type: 'service-access', ...claims },
        useStaticSigningKey: false,
        algorithm: 'RS256',
        jwksDomain: coreUrl,
        validity: VALIDITY_SECONDS,
      })
      const response = await ask('/recipe/jwt', { method: 'POST', body })
      if (!response.ok) throw new Error(`the identity core answered ${response.status}`)
      const { status, jwt } = (await response.json()) as { status: string; jwt?: string }
      if (status !== 'OK' || jwt === undefined) throw new Error('the identity core made no token')
      return jwt
    },
    async ready() {
      const response = await ask('/apiversion', {}).catch(() => {
        throw new StartError(`the identity core at ${coreUrl} does not answer`)
      })
      if (response.ok) return
      throw new StartError(`the identity core at ${coreUrl} answered ${response.status}`)
    },
  }
}
