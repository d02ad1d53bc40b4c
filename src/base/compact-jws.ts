import { isObject } from './options.js'

/** The segments as they are in a token, not decoded. */
interface Segments {
  readonly header: string
  readonly payload: string
  readonly signature: string
}

/** The segments of a token in compact form (RFC 7515, section 7.1); `undefined` for anything else. */
export function segmentsOf(token: string): Segments | undefined {
  const segments = token.split('.', 4)
  if (segments.length !== 3 || !segments.every(isCanonical)) return undefined
  const [header = '', payload = '', signature = ''] = segments
  return { header, payload, signature }
}

/** Whether it is base64url in its only spelling (RFC 4648, section 3.5), and not empty. Node also decodes others. */
const isCanonical = (segment: string): boolean =>
  segment !== '' && Buffer.from(segment, 'base64url').toString('base64url') === segment

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A JSON object, and the text that it was read from. */
export interface JsonObject {
  readonly members: Record<string, unknown>
  readonly text: string
}

/** A JSON object in valid UTF-8 without a byte order mark; anything else is `undefined`. */
export function readJsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const members: unknown = JSON.parse(text)
    // Without a prototype, so that `members.toString` is what the JSON says.
    return isObject(members) ? { members: Object.setPrototypeOf(members, null), text } : undefined
  } catch {
    return undefined
  }
}

/** A JSON object in a base64url segment; anything else is `undefined`. */
export const readJsonSegment = (segment: string): JsonObject | undefined =>
  readJsonObject(Buffer.from(segment, 'base64url'))

type Members = JsonObject['members']

/** The header read last. A service sends many tokens with one header, because one key signs them. */
let last: { readonly segment: string; readonly members: Readonly<Members> | undefined } | undefined

/** The members of a JOSE header; `undefined` if it is no JSON object in canonical base64url (RFC 4648, section 3.5). */
export function readHeader(segment: string): Readonly<Members> | undefined {
  if (last?.segment === segment) return last.members
  const bytes = Buffer.from(segment, 'base64url')
  // Node also decodes invalid base64url. The new string, unlike a slice, does not keep the token in memory.
  const canonical = bytes.toString('base64url')
  if (canonical !== segment) return undefined
  last = { segment: canonical, members: readJsonObject(bytes)?.members }
  return last.members
}

const MAX_KEY_ID_LENGTH = 256

/** At most 256 visible ASCII characters (RFC 7517, section 4.5, leaves the form open). */
export const isKeyId = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_KEY_ID_LENGTH && /^[\x21-\x7e]+$/.test(value)

/** SuperTokens does not rotate its static keys; their ids begin with `s-`. */
export const isStaticKeyId = (kid: string): boolean => kid.startsWith('s-')

/** The members of private and symmetric keys (RFC 7518, section 6). */
export const PRIVATE_MEMBERS: readonly string[] = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
