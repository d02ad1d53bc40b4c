import type { KeyRing } from './key-ring.js'
import type { KeySetAnswer } from './key-set-gate.js'
import { isSupported, mintToken, parseMintRequest } from './mint.js'
import { type Answer, INTERFACE_VERSIONS, type Route } from './router.js'
import { openSessions } from './sessions.js'

/** A mint request is a kilobyte; this leaves room for long lists of permissions. */
const LARGEST_BODY_BYTES = 256 * 1024

export interface CoreParts {
  readonly keyRing: KeyRing
  readonly clock: () => number
  /** Asked before each answer with the key set. */
  readonly onKeySetRequest: () => Promise<KeySetAnswer>
}

/** The HTTP interface of the core, as far as service tokens and users' sessions need it. */
export function tokenRoutes(parts: CoreParts): [string, Route][] {
  const keySet: Route = {
    isPublic: true,
    tenants: 'unknown',
    answers: { GET: () => publishKeySet(parts) },
  }
  const sessions = openSessions(parts)
  const versions = { status: 200, body: { versions: INTERFACE_VERSIONS } }
  return [
    ['/apiversion', { tenants: 'unknown', answers: { GET: () => versions } }],
    ['/recipe/jwt', { ...post((text) => mint(text, parts)), tenants: 'refused' }],
    ['/.well-known/jwks.json', keySet],
    ['/auth/jwt/jwks.json', keySet],
    ['/recipe/session', post(sessions.create)],
    ['/recipe/session/verify', post(sessions.verify)],
    ['/recipe/session/remove', post(sessions.remove)],
  ]
}

/** A route that answers 200, unless the body is none that the core takes. */
function post(answerTo: (text: string) => Promise<object> | object): Route {
  return {
    tenants: 'unknown',
    largestBodyBytes: LARGEST_BODY_BYTES,
    answers: {
      POST: async ({ body }) => ({ status: 200, body: await answerTo(await body()) }),
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
