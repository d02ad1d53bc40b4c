import { allow, type Decision, deny } from '../../base/decision/reason.js'
import { headerValues, type WireHeaders } from '../../base/raw-headers.js'

/** The core's tokens are below 2 KiB. */
const MAX_TOKEN_LENGTH = 8192
const SCHEME = /^bearer /i

/**
 * The token of exactly one `Authorization: Bearer <token>` (RFC 6750, section 2.1).
 *
 * @throws ServiceAuthError when the header is in `headers` only: it did not come on the wire.
 */
export function readBearer(headers: WireHeaders): Decision<string> {
  const values = headerValues(headers, 'authorization')
  const [value] = values
  if (value === undefined) return deny('credentials_missing')
  if (values.length > 1) return deny('authorization_repeated')
  if (!SCHEME.test(value)) return deny('authorization_malformed')
  const token = value.slice('Bearer '.length)
  if (token.length > MAX_TOKEN_LENGTH) return deny('token_too_long')
  return allow(token)
}
