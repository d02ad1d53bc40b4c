import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { compactToken, rs256 } from '../../../../src/testing/issuer/compact-token.js'
import type { KeyRing } from '../../../../src/testing/issuer/issuer-keys.js'
import { field, type JsonObject, optionalField } from './input.js'
import { type Call, noSuchTenant, type Route, type Routes } from './router.js'

const SECOND_MS = 1000
/** The core's defaults: an hour, and 100 days. */
const ACCESS_TOKEN_VALIDITY_MS = 3_600 * SECOND_MS
const REFRESH_TOKEN_VALIDITY_MS = 100 * 86_400 * SECOND_MS
const REFRESH_TOKEN_BYTES = 32

/** The routes for the sessions of users, which are kept in memory. */
export function sessionRoutes(keyRing: KeyRing, clock: () => number): Routes {
  /** By their tokens; of those that are revoked none. */
  const sessions = new Map<string, { expiresAtMs: number; session: Session | undefined }>()
  return {
    'POST /recipe/session': route((body) => {
      const made = makeSession(body, keyRing, clock())
      const { token, expiry: expiresAtMs } = made.accessToken
      sessions.set(token, { expiresAtMs, session: made.session })
      return { status: 'OK', ...made }
    }),
    // The SDK calls it if it is configured to check the database; otherwise it verifies tokens itself.
    'POST /recipe/session/verify': route((body) => {
      const known = sessions.get(field(body, 'accessToken', 'string'))
      if (known === undefined || known.expiresAtMs < clock()) {
        return { status: 'TRY_REFRESH_TOKEN', message: 'Not valid' }
      }
      if (known.session !== undefined) return { status: 'OK', session: known.session }
      const message = 'Either the session has ended or has been blacklisted'
      return { status: 'UNAUTHORISED', message }
    }),
    'POST /recipe/session/remove': route((body) => {
      const handles = field(body, 'sessionHandles', 'list')
      const gone = [...sessions.values()].filter(({ session }) => handles.includes(session?.handle))
      const sessionHandlesRevoked = gone.map(({ session }) => session?.handle)
      for (const each of gone) each.session = undefined
      return { status: 'OK', sessionHandlesRevoked }
    }),
  }
}

function route(answerTo: (body: JsonObject) => object): Route {
  const answer = ({ body, tenantId }: Call) => {
    if (tenantId !== TENANT) throw noSuchTenant(tenantId)
    return answerTo(body)
  }
  return { isPerTenant: true, answer }
}

/** A session in the answers of the core. */
interface Session {
  readonly handle: string
  readonly userId: string
  readonly recipeUserId: string
  readonly userDataInJWT: JsonObject
  readonly tenantId: string
}

const TENANT = 'public'

/**
 * Makes the session and its tokens, in the form of the core's answer.
 * @throws {Refused} if the payload has one of the core's own claims
 */
function makeSession(body: JsonObject, keyRing: KeyRing, nowMs: number) {
  const userId = field(body, 'userId', 'string')
  const antiCsrfToken = field(body, 'enableAntiCsrf', 'boolean') ? randomUUID() : undefined
  const payload = field(body, 'userDataInJWT', 'object')
  const isDynamic = optionalField(body, 'useDynamicSigningKey', 'boolean') ?? true
  const handle = randomUUID()
  const refreshToken = `${randomBytes(REFRESH_TOKEN_BYTES).toString('base64url')}.V2`
  // In whole seconds, as in the token.
  const createdTime = nowMs - (nowMs % SECOND_MS)
  const expiry = createdTime + ACCESS_TOKEN_VALIDITY_MS
  const claims = {
    sub: userId,
    exp: expiry / SECOND_MS,
    iat: createdTime / SECOND_MS,
    tId: TENANT,
    rsub: userId,
    sessionHandle: handle,
    refreshTokenHash1: createHash('sha256').update(refreshToken).digest('hex'),
    parentRefreshTokenHash1: null,
    antiCsrfToken: antiCsrfToken ?? null,
  }
  const { kid, privateKey } = isDynamic ? keyRing.current() : keyRing.staticKey
  // The header of the core's interface since 4.0. No token of `POST /recipe/jwt` has the member `version`.
  const header = { kid, typ: 'JWT', version: '5', alg: 'RS256' }
  const token = compactToken(header, { ...claims, ...payload }, rs256(privateKey))
  return {
    session: { handle, userId, recipeUserId: userId, userDataInJWT: payload, tenantId: TENANT },
    accessToken: { token, expiry, createdTime },
    // Only the core reads it, and this stand-in refreshes nothing.
    refreshToken: { token: refreshToken, expiry: nowMs + REFRESH_TOKEN_VALIDITY_MS, createdTime },
    antiCsrfToken,
  }
}
