import { readAuthorization } from './authorization.js'
import { type CookieCarrier, readSessionCookie } from './session-cookie.js'
import { readSessionHeader, type SessionHeader } from './session-header.js'

/** The session credential of a request, as far as it can be recognised before a signature is verified. */
export type PresentedSession =
  | { readonly type: 'absent' }
  | {
      readonly type: 'refused'
      readonly reason: 'credentials_ambiguous' | 'session_token_malformed'
    }
  | { readonly type: 'token'; readonly header: SessionHeader }

const ABSENT: PresentedSession = { type: 'absent' }
const SEVERAL: PresentedSession = { type: 'refused', reason: 'credentials_ambiguous' }
const MALFORMED: PresentedSession = { type: 'refused', reason: 'session_token_malformed' }

/**
 * A session travels as a bearer token or in a cookie. A cookie counts as presented whatever it holds: a
 * verifier that finds no session token in one place may look in the other.
 *
 * @throws ServiceAuthError when `rawHeaders` and `headers` hold different values.
 */
export function findSession(request: CookieCarrier, cookieName: string): PresentedSession {
  const authorization = readAuthorization(request)
  const cookie = readSessionCookie(request, cookieName)
  if (cookie.type === 'absent')
    return authorization.type === 'session' ? tokenOf(authorization) : ABSENT
  if (authorization.type !== 'absent') return SEVERAL
  const header = cookie.type === 'single' ? readSessionHeader(cookie.value) : undefined
  return header === undefined ? MALFORMED : tokenOf({ header })
}

const tokenOf = ({ header }: { header: SessionHeader }): PresentedSession => ({
  type: 'token',
  header,
})
