import { createHash, randomBytes, randomUUID } from 'node:crypto'
import {
  field,
  isBoolean,
  isObject,
  isString,
  type JsonObject,
  optionalField,
  parseObject,
} from './json-input.js'
import { makeSessionToken, type SessionClaims } from './session-token.js'
import type { SigningKey } from './signing-key.js'

export interface SessionRequest {
  readonly userId: string
  readonly enableAntiCsrf: boolean
  /** The SDK's claims for the token, in addition to the core's own. */
  readonly payload: JsonObject
  readonly useDynamicSigningKey: boolean
}

/** A session in the answers of the core. */
export interface Session {
  readonly handle: string
  readonly userId: string
  readonly recipeUserId: string
  readonly userDataInJWT: JsonObject
  readonly tenantId: string
}

/** The only tenant of the stand-in, as in a core without further tenants. */
const TENANT = 'public'

const SECOND_MS = 1000
/** The core's defaults: an hour, and 100 days. */
const ACCESS_TOKEN_VALIDITY_MS = 3_600 * SECOND_MS
const REFRESH_TOKEN_VALIDITY_MS = 100 * 86_400 * SECOND_MS
const REFRESH_TOKEN_BYTES = 32

/**
 * Reads the body of `POST /recipe/session`, field by field in the core's order.
 * @throws {BadInput}
 */
export function parseSessionRequest(text: string): SessionRequest {
  const body = parseObject(text)
  const userId = field(body, 'userId', isString)
  const enableAntiCsrf = field(body, 'enableAntiCsrf', isBoolean)
  const payload = field(body, 'userDataInJWT', isObject)
  field(body, 'userDataInDatabase', isObject)
  const useDynamicSigningKey = optionalField(body, 'useDynamicSigningKey', isBoolean) ?? true
  return { userId, enableAntiCsrf, payload, useDynamicSigningKey }
}

/**
 * Makes the session and its tokens, in the form of the core's answer.
 * @throws {BadInput} if the payload has one of the core's own claims
 */
export function makeSession(request: SessionRequest, key: SigningKey, nowMs: number) {
  const { userId, enableAntiCsrf, payload } = request
  const handle = randomUUID()
  const session: Session = {
    handle,
    userId,
    recipeUserId: userId,
    userDataInJWT: payload,
    tenantId: TENANT,
  }
  const antiCsrfToken = enableAntiCsrf ? randomUUID() : undefined
  const refreshToken = makeRefreshToken(nowMs)
  // In whole seconds, as in the token.
  const createdTime = nowMs - (nowMs % SECOND_MS)
  const expiry = createdTime + ACCESS_TOKEN_VALIDITY_MS
  const claims: SessionClaims = {
    sub: userId,
    exp: expiry / SECOND_MS,
    iat: createdTime / SECOND_MS,
    tId: TENANT,
    rsub: userId,
    sessionHandle: handle,
    refreshTokenHash1: createHash('sha256').update(refreshToken.token).digest('hex'),
    parentRefreshTokenHash1: null,
    antiCsrfToken: antiCsrfToken ?? null,
  }
  const accessToken = { token: makeSessionToken(claims, payload, key), expiry, createdTime }
  return { session, accessToken, refreshToken, antiCsrfToken }
}

/** Only the core reads it, and this stand-in refreshes nothing. */
function makeRefreshToken(createdTime: number) {
  const token = `${randomBytes(REFRESH_TOKEN_BYTES).toString('base64url')}.V2`
  return { token, expiry: createdTime + REFRESH_TOKEN_VALIDITY_MS, createdTime }
}
