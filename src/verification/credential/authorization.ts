import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { headerValues, type WireHeaders } from '../../base/raw-headers.js'
import { readSessionHeader, type SessionHeader } from './session-header.js'

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
