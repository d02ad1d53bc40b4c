import {
  field,
  isBoolean,
  isListOfStrings,
  isString,
  optionalField,
  parseObject,
} from './json-input.js'
import type { KeyRing } from './key-ring.js'
import { makeSession, parseSessionRequest, type Session } from './new-session.js'
import { readSessionToken } from './session-token.js'

/**
 * The sessions of users, in memory. Each function takes the body of a request and returns the body
 * of the answer.
 */
export interface Sessions {
  create(text: string): Promise<object>
  /** The SDK calls it if it is configured to check the database; otherwise it verifies tokens itself. */
  verify(text: string): object
  remove(text: string): object
}

export interface SessionsOptions {
  readonly keyRing: KeyRing
  readonly clock: () => number
}

export function openSessions({ keyRing, clock }: SessionsOptions): Sessions {
  const live = new Map<string, Session>()
  return {
    async create(text) {
      const request = parseSessionRequest(text)
      const key = await keyRing.signingKey(request.useDynamicSigningKey ? 'dynamic' : 'static')
      const made = makeSession(request, key, clock())
      live.set(made.session.handle, made.session)
      return { status: 'OK', ...made }
    },
    verify(text) {
      const asked = parseVerification(text)
      const claims = readSessionToken(asked.accessToken, keyRing.find)
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
