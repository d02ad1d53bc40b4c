import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { headerValues, type WireHeaders } from '../../base/raw-headers.js'
import { readAuthorization, readSessionHeader, type SessionHeader } from './authorization.js'

/** The session credential of a request, as far as it can be recognised before a signature is verified. */
type PresentedSession =
  | { readonly type: 'absent' }
  | {
      readonly type: 'refused'
      readonly reason: 'credentials_ambiguous' | 'session_token_malformed'
    }
  | { readonly type: 'token'; readonly header: SessionHeader }

const ABSENT: PresentedSession = { type: 'absent' }
const TWO_CREDENTIALS: PresentedSession = { type: 'refused', reason: 'credentials_ambiguous' }
const MALFORMED: PresentedSession = { type: 'refused', reason: 'session_token_malformed' }

/**
 * A session travels as a bearer token or in a cookie. A cookie counts as presented whatever it holds: a
 * verifier that finds no session token in one place may look in the other.
 *
 * @throws ServiceAuthError if `rawHeaders` and `headers` hold different values.
 */
export function findSession(request: CookieCarrier, cookieName: string): PresentedSession {
  const authorization = readAuthorization(request)
  const cookie = readSessionCookie(request, cookieName)
  if (cookie === undefined) {
    return authorization.type === 'session' ? tokenSession(authorization.header) : ABSENT
  }
  if (authorization.type !== 'absent') return TWO_CREDENTIALS
  const header = readSessionHeader(cookie)
  return header === undefined ? MALFORMED : tokenSession(header)
}

const tokenSession = (header: SessionHeader): PresentedSession => ({ type: 'token', header })

/** The places where a session verifier may look: the headers, and the cookies that a parser read. */
interface CookieCarrier extends WireHeaders {
  readonly cookies?: unknown
}

/** A cookie about whose value readers may differ counts as an empty one. */
const AMBIGUOUS = ''

/**
 * The cookie of this name, if every parser would read the same value: it was sent once, with its name spelt
 * exactly so, and `request.cookies`, if a parser has set them, hold the value as it was sent.
 *
 * @throws ServiceAuthError if `rawHeaders` and `headers` hold different values of the cookie.
 */
function readSessionCookie(request: CookieCarrier, name: string): string | undefined {
  const cookies = cookiesSent(name, request)
  const parsed = request.cookies as Readonly<Record<string, unknown>> | null | undefined
  const cookie = cookies[0]
  if (cookie === undefined) return parsed?.[name] === undefined ? undefined : AMBIGUOUS
  const { spelling, value = AMBIGUOUS } = cookie
  if (cookies.length > 1 || spelling !== name) return AMBIGUOUS
  return parsed && parsed[name] !== value ? AMBIGUOUS : value
}

interface Cookie {
  /** The name as it was sent. */
  readonly spelling: string
  /** `undefined` if there is no `=`. */
  readonly value: string | undefined
}

function cookiesSent(name: string, request: CookieCarrier): readonly Cookie[] {
  const cookies = headerValues(request, 'cookie').flatMap((header) => cookiesNamed(name, header))
  const text = request.headers?.['cookie']
  const inHeaders = typeof text === 'string' ? cookiesNamed(name, text) : []
  if (JSON.stringify(inHeaders) === JSON.stringify(cookies)) return cookies
  throw wrongWiring(
    'cookie cannot be read: the request’s headers hold other session cookies than its rawHeaders, and a verifier of sessions would read those',
  )
}

/** All cookies that some parser might take for this one. */
function cookiesNamed(name: string, header: string): Cookie[] {
  return header
    .split(';')
    .map(readCookie)
    .filter(({ spelling }) => decodeName(spelling) === name)
}

function readCookie(pair: string): Cookie {
  const equals = pair.indexOf('=')
  if (equals < 0) return { spelling: pair.trim(), value: undefined }
  return { spelling: pair.slice(0, equals).trim(), value: trimEndSpaces(pair.slice(equals + 1)) }
}

const SPACES = /^[\t ]*$/

/** Keeps no-break spaces, because parsers disagree on whether they are part of the value. */
function trimEndSpaces(value: string): string {
  const trimmed = value.trimEnd()
  return SPACES.test(value.slice(trimmed.length)) ? trimmed : value
}

/** Some readers decode percent signs in names, before or after they trim. */
function decodeName(spelling: string): string {
  try {
    return spelling.includes('%') ? decodeURIComponent(spelling).trim() : spelling
  } catch {
    return spelling
  }
}
