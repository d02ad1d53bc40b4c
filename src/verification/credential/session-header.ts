import { readHeader } from '../../base/compact-jws.js'

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
