import { createHash, createPublicKey, randomBytes, randomUUID, verify } from 'node:crypto'
import {
  BadInput,
  field,
  isBoolean,
  isListOfStrings,
  isObject,
  isString,
  type JsonObject,
  optionalField,
  parseObject,
} from './input.js'
import { type KeyRing, type SigningKey, signToken } from './tokens.js'

/**
 * The sessions of users, in memory. Each function takes the body of a request and returns the body
 * of the answer.
 */
interface Sessions {
  create(text: string): object
  /** The SDK calls it if it is configured to check the database; otherwise it verifies tokens itself. */
  verify(text: string): object
  remove(text: string): object
}

interface SessionsOptions {
  readonly keyRing: KeyRing
  readonly clock: () => number
}

export function openSessions({ keyRing, clock }: SessionsOptions): Sessions {
  const live = new Map<string, Session>()
  return {
    create(text) {
      const request = parseSessionRequest(text)
      const key = keyRing.signingKey(request.useDynamicSigningKey ? 'dynamic' : 'static')
      const made = makeSession(request, key, clock())
      live.set(made.session.handle, made.session)
      return { status: 'OK', ...made }
    },
    verify(text) {
      const asked = parseVerification(text)
      const claims = readSessionToken(asked.accessToken, keyRing.published())
      if (claims === undefined || claims.exp * 1000 < clock()) return tryRefresh('Not valid')
      if (asked.antiCsrf && claims.antiCsrfToken !== asked.antiCsrf.token) {
        return tryRefresh('anti-csrf check failed')
      }
      const session = live.get(claims.sessionHandle)
      if (session !== undefined) return { status: 'OK', session }
      const message = 'Either the session has ended or has been blacklisted'
      return { status: 'UNAUTHORISED', message }
    },
    remove(text) {
      const handles = field(parseObject(text), 'sessionHandles', isListOfStrings)
      const sessionHandlesRevoked = handles.filter((handle) => live.delete(handle))
      return { status: 'OK', sessionHandlesRevoked }
    },
  }
}

function parseVerification(text: string) {
  const body = parseObject(text)
  const accessToken = field(body, 'accessToken', isString)
  const token = optionalField(body, 'antiCsrfToken', isString)
  const isAsked = field(body, 'doAntiCsrfCheck', isBoolean)
  const isEnabled = field(body, 'enableAntiCsrf', isBoolean)
  return { accessToken, antiCsrf: isAsked && isEnabled ? { token } : undefined }
}

function tryRefresh(message: string): object {
  return { status: 'TRY_REFRESH_TOKEN', message }
}

interface SessionRequest {
  readonly userId: string
  readonly enableAntiCsrf: boolean
  /** The SDK's claims for the token, in addition to the core's own. */
  readonly payload: JsonObject
  readonly useDynamicSigningKey: boolean
}

/** A session in the answers of the core. */
interface Session {
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
function parseSessionRequest(text: string): SessionRequest {
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
function makeSession(request: SessionRequest, key: SigningKey, nowMs: number) {
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

/** The core's own claims in a session token; the SDK's payload is next to them. */
interface SessionClaims {
  readonly sub: string
  /** Seconds since the epoch, like `iat`. */
  readonly exp: number
  readonly iat: number
  readonly tId: string
  readonly rsub: string
  readonly sessionHandle: string
  readonly refreshTokenHash1: string
  readonly parentRefreshTokenHash1: string | null
  readonly antiCsrfToken: string | null
}

/** The header of the core's interface since 4.0. No token of `POST /recipe/jwt` has this member. */
const SESSION_HEADER = { version: '5' }

/** @throws {BadInput} if the payload has one of the core's own claims */
function makeSessionToken(claims: SessionClaims, payload: JsonObject, key: SigningKey): string {
  if (Object.keys(payload).some((name) => Object.hasOwn(claims, name))) {
    throw new BadInput('The user payload contains protected field')
  }
  return signToken({ ...claims, ...payload }, key, SESSION_HEADER)
}

/** Returns the claims of a session token that the core signed, even if it has expired. */
function readSessionToken(token: string, keys: readonly SigningKey[]): SessionClaims | undefined {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const { kid, version } = decode(header)
  const key = keys.find((each) => each.kid === kid)
  if (key === undefined || version !== SESSION_HEADER.version) return undefined
  const signed = Buffer.from(`${header}.${payload}`)
  const bytes = Buffer.from(signature, 'base64url')
  if (!verify('sha256', signed, createPublicKey(key.privateKey), bytes)) return undefined
  // Only the core signs headers of this kind, and only over these claims.
  return decode(payload) as JsonObject & SessionClaims
}

function decode(segment: string): JsonObject {
  try {
    const value: unknown = JSON.parse(Buffer.from(segment, 'base64url').toString())
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
