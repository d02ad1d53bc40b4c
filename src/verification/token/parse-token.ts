import { readJsonObject, segmentsOf } from '../../base/compact-jws.js'
import { allow, type Decision, deny } from '../../base/decision/reason.js'
import { isKeyId } from '../key-set/usable-keys.js'

/** A token whose form and header have been checked, and nothing else. */
export interface ParsedToken {
  readonly token: string
  readonly kid: string
}

/**
 * `version` stands in the headers of session tokens alone. The others would change how the token is
 * read, or which key is used (RFC 7515, section 4.1; RFC 7797).
 */
const FORBIDDEN_PARAMETERS = ['version', 'crit', 'b64', 'jwk', 'jku', 'x5c', 'x5u']

/** Checks form and header; never the payload. */
export function parseToken(token: string): Decision<ParsedToken> {
  const segments = segmentsOf(token)
  if (segments === undefined) return deny('token_malformed')
  const header = readJsonObject(Buffer.from(segments.header, 'base64url'))?.members
  if (header === undefined) return deny('token_malformed')
  if (FORBIDDEN_PARAMETERS.some((name) => Object.hasOwn(header, name))) {
    return deny('header_parameter_forbidden')
  }
  if (header['alg'] !== 'RS256') return deny('algorithm_not_allowed')
  const { kid } = header
  return isKeyId(kid) ? allow({ token, kid }) : deny('key_id_invalid')
}
