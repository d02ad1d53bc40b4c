import { isRecord } from '../base/options.js'
import { allow, type Decision, deny } from '../decision/reason.js'
import { isKeyId } from '../key-set/screen.js'

/** A token whose form and header have been checked, and nothing else. */
export interface ScreenedToken {
  readonly token: string
  readonly kid: string
}

/** Three base64url segments without padding (RFC 7515, section 7.1). */
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/** What would change how the token is read, or which key is used (RFC 7515, 4.1; RFC 7797). */
const FORBIDDEN_PARAMETERS = ['crit', 'b64', 'jwk', 'jku', 'x5c', 'x5u']

/** Checks form and header; never the payload. */
export function screenToken(token: string): Decision<ScreenedToken> {
  if (!COMPACT_JWS.test(token)) return deny('token_malformed')
  const segments = token.split('.')
  if (!segments.every(isCanonical)) return deny('token_malformed')
  const header = readJsonObject(Buffer.from(segments[0] ?? '', 'base64url'))?.members
  if (header === undefined) return deny('token_malformed')
  if (FORBIDDEN_PARAMETERS.some((name) => Object.hasOwn(header, name))) {
    return deny('header_parameter_forbidden')
  }
  if (header['alg'] !== 'RS256') return deny('algorithm_not_allowed')
  const { kid } = header
  return isKeyId(kid) ? allow({ token, kid }) : deny('key_id_invalid')
}

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Whether the bits that do not count are zero, so that no two spellings mean the same octets. */
function isCanonical(segment: string): boolean {
  const rest = segment.length % 4
  if (rest === 0) return true
  if (rest === 1) return false
  const last = BASE64URL.indexOf(segment.charAt(segment.length - 1))
  return last % (rest === 2 ? 16 : 4) === 0
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A JSON object, and the text that it was read from. */
export interface JsonObject {
  readonly members: Record<string, unknown>
  readonly text: string
}

/** A JSON object in valid UTF-8 without a byte order mark; anything else is `undefined`. */
export function readJsonObject(octets: Uint8Array): JsonObject | undefined {
  try {
    const text = utf8.decode(octets)
    const members: unknown = JSON.parse(text)
    // What is not a member of its own is none.
    return isRecord(members) ? { members: Object.setPrototypeOf(members, null), text } : undefined
  } catch {
    return undefined
  }
}
