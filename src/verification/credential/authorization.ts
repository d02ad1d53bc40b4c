import { readHeader } from '../../base/compact-jws.js'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { headerValues, type WireHeaders } from '../../base/raw-headers.js'

/** Whose credential the `Authorization` of a request is: a session's, or else a service's. */
type Authorization =
  | { readonly type: 'absent' }
  | { readonly type: 'session'; readonly header: SessionHeader }
  | { readonly type: 'service' }

const ABSENT: Authorization = { type: 'absent' }
const SERVICE: Authorization = { type: 'service' }

/** Letter case does not count (RFC 9110, section 11.1), nor does it in `readToken`, which `serviceAuth` uses. */
const SCHEME = /^bearer /i

/**
 * A bearer token whose header has the member `version` is a session's. Everything else is a service's:
 * a repeated header, an empty one, another scheme, and anything that is not a token.
 *
 * @throws ServiceAuthError if `rawHeaders` and `headers` hold different values.
 */
export function readAuthorization(wire: WireHeaders): Authorization {
  const values = headerValues(wire, 'authorization')
  const [value] = values
  if (value === undefined) return ABSENT
  if (values.length > 1 || !SCHEME.test(value)) return SERVICE
  const header = readSessionHeader(value.slice('Bearer '.length))
  if (header === undefined) return SERVICE
  if (wire.headers['authorization'] !== value) throw changed()
  return { type: 'session', header }
}

const changed = () =>
  wrongWiring(
    'authorization cannot be read: the request’s headers hold another value than its rawHeaders, and a verifier of sessions would read that one',
  )

/** The JOSE header of a session token. Nobody has verified its signature yet. */
export type SessionHeader = Readonly<Record<string, unknown>>

/** The rest of the token may be damaged or empty: the session verifier refuses that. */
const THREE_SEGMENTS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*$/

/** The headers of the core's session tokens have less than 200 bytes. */
const MAX_HEADER_BYTES = 1024
const MAX_HEADER_LENGTH = Math.ceil((MAX_HEADER_BYTES * 4) / 3)

/**
 * The header of a session token; `undefined` for every other text. The core writes the member `version`
 * into the headers of session tokens alone, and whoever verifies the token verifies its header too
 * (explicit typing: RFC 8725, sections 3.11 and 3.12).
 */
export function readSessionHeader(token: string): SessionHeader | undefined {
  const headerLength = token.indexOf('.')
  if (headerLength > MAX_HEADER_LENGTH) return undefined
  const header = readHeader(token.slice(0, headerLength))
  if (header === undefined || !Object.hasOwn(header, 'version')) return undefined
  // This check comes last: it reads the whole token, and most tokens are not a session's.
  return THREE_SEGMENTS.test(token) ? header : undefined
}
