import { type CoreVersion, INTERFACE_VERSIONS } from './interface-version.js'
import type { KeyRing } from './key-ring.js'
import type { KeySetAnswer } from './key-set-gate.js'
import { isSupported, mintToken, parseMintRequest } from './mint.js'
import { type Answer, helloRoute, noSuchTenant, type Route } from './router.js'
import { openSessions } from './sessions.js'

export interface CoreParts {
  readonly version: CoreVersion
  readonly keyRing: KeyRing
  readonly clock: () => number
  /** Called before each answer with the key set. */
  readonly onKeySetRequest: () => Promise<KeySetAnswer>
}

/** The part of the core's HTTP interface that service tokens and user sessions need. */
export function tokenRoutes(parts: CoreParts): [string, Route][] {
  const keys: Route = {
    tenants: 'refused',
    answers: {
      GET: async () => {
        const { keys } = await parts.keyRing.keySet()
        return { status: 200, body: { keys, status: 'OK' } }
      },
    },
  }
  const sessions = openSessions(parts)
  const versions = { status: 200, body: { versions: INTERFACE_VERSIONS[parts.version] } }
  const apiVersion: Route = {
    isOfEachVersion: true,
    tenants: 'refused',
    answers: { GET: () => versions },
  }
  return [
    ['/hello', helloRoute],
    ['/apiversion', apiVersion],
    ['/recipe/jwt', { ...post((text) => mint(text, parts)), tenants: 'refused' }],
    ['/recipe/jwt/jwks', keys],
    ['/.well-known/jwks.json', keySetRoute(parts)],
    ['/recipe/session', post(sessions.create)],
    ['/recipe/session/verify', post(sessions.verify)],
    ['/recipe/session/remove', post(sessions.remove)],
  ]
}

/** The key set. The core and the API domain publish it at different paths. */
export function keySetRoute(parts: CoreParts): Route {
  return {
    isPublic: true,
    isOfEachVersion: true,
    tenants: 'served',
    answers: { GET: () => publishKeySet(parts) },
  }
}

/** A route that answers 200, unless the core would refuse the body. */
function post(answerTo: (text: string) => Promise<object> | object): Route {
  return {
    tenants: 'served',
    answers: {
      POST: async ({ body, tenantId }) => {
        if (tenantId !== 'public') throw noSuchTenant(tenantId)
        return { status: 200, body: await answerTo(await body()) }
      },
    },
  }
}

async function mint(text: string, { keyRing, clock }: CoreParts): Promise<object> {
  const asked = parseMintRequest(text)
  if (!isSupported(asked.algorithm)) return { status: 'UNSUPPORTED_ALGORITHM_ERROR' }
  const key = await keyRing.signingKey(asked.useStaticSigningKey ? 'static' : 'dynamic')
  return { status: 'OK', jwt: mintToken(asked, key, clock()) }
}

async function publishKeySet({ keyRing, onKeySetRequest }: CoreParts): Promise<Answer> {
  const choice = await onKeySetRequest()
  if (choice === 'hang-up') return choice
  if (choice === 'unavailable') return { status: 503, body: 'Service Unavailable' }
  const { keys, maxAgeSeconds } = await keyRing.keySet()
  const cacheControl = `max-age=${maxAgeSeconds}, must-revalidate`
  return { status: 200, headers: { 'cache-control': cacheControl }, body: { keys } }
}
