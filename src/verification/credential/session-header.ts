import { readJsonObject } from '../../base/compact-jws.js'

/** The JOSE header of a session token. Nobody has verified its signature yet. */
export type SessionHeader = Readonly<Record<string, unknown>>

/** The rest of the token may be damaged or empty: the session verifier refuses that. */
const THREE_SEGMENTS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*$/

/** The core's session tokens have less than 200 bytes. */
const MAX_HEADER_BYTES = 1024
const MAX_HEADER_LENGTH = Math.ceil((MAX_HEADER_BYTES * 4) / 3)

/**
 * The header of a session token; `undefined` of every other text. The core writes the member `version`
 * into the headers of session tokens alone, and whoever verifies the token verifies its header too
 * (explicit typing: RFC 8725, sections 3.11 and 3.12).
 */
export function readSessionHeader(token: string): SessionHeader | undefined {
  const header = headerOf(token)
  if (header === undefined || !Object.hasOwn(header, 'version')) return undefined
  return THREE_SEGMENTS.test(token) ? header : undefined
}

interface ReadHeader {
  /** The encoded header, as in the token. */
  readonly segment: string
  readonly header: SessionHeader | undefined
}

/** All tokens of a key have the same header, and a service sends many: the last one is remembered. */
let last: ReadHeader | undefined

function headerOf(token: string): SessionHeader | undefined {
  const length = token.indexOf('.')
  if (length < 1 || length > MAX_HEADER_LENGTH) return undefined
  const sent = token.slice(0, length)
  if (last !== undefined && last.segment === sent) return last.header
  const bytes = Buffer.from(sent, 'base64url')
  // Only one spelling of the bytes counts: Node also decodes what is not base64url. It is a text of
  // its own, so that remembering it keeps no token in memory.
  const segment = bytes.toString('base64url')
  if (segment !== sent) return undefined
  last = { segment, header: readJsonObject(bytes)?.members }
  return last.header
}
