import { readJsonObject } from '../base/compact-jws.js'

/** The JOSE header of a session token. Nobody has verified its signature yet. */
export type SessionHeader = Readonly<Record<string, unknown>>

/** What follows the header may be damaged, or empty: that is for the verifier of sessions to refuse. */
const THREE_SEGMENTS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*$/

/** The core's session tokens have less than 200. */
const MAX_HEADER_BYTES = 1024

/**
 * The header of a session token; `undefined` of every other text. The core writes the member `version`
 * into the headers of session tokens alone, and whoever verifies the token verifies its header too
 * (explicit typing: RFC 8725, sections 3.11 and 3.12).
 */
export function readSessionHeader(token: string): SessionHeader | undefined {
  const header = readHeader(token.slice(0, Math.max(0, token.indexOf('.'))))
  if (header === undefined || !Object.hasOwn(header, 'version')) return undefined
  return THREE_SEGMENTS.test(token) ? header : undefined
}

function readHeader(segment: string): SessionHeader | undefined {
  if (segment === '' || segment.length > (MAX_HEADER_BYTES * 4) / 3 + 1) return undefined
  const octets = Buffer.from(segment, 'base64url')
  if (octets.byteLength > MAX_HEADER_BYTES) return undefined
  // Only one spelling of the octets counts: Node also decodes what is not base64url.
  if (octets.toString('base64url') !== segment) return undefined
  return readJsonObject(octets)?.members
}
