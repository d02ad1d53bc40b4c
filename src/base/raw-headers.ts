import { type Denial, deny } from './decision/reason.js'
import { wrongWiring } from './decision/service-auth-error.js'

/** Alternating names and values, as received. */
type RawHeaders = readonly string[]

/** The two forms in which Node gives the headers of a request. */
export interface WireHeaders {
  readonly rawHeaders: RawHeaders
  readonly headers: { readonly [lowerCaseName: string]: string | readonly string[] | undefined }
}

/**
 * The values of one header, in the order in which they came. Only `rawHeaders` are trusted: `headers` drop
 * repeated values, and any code may change them.
 *
 * @throws ServiceAuthError if a header is in `headers` but missing from `rawHeaders`.
 */
export function headerValues(wire: WireHeaders, lowerCaseName: string): string[] {
  const { rawHeaders } = wire
  if (!Array.isArray(rawHeaders)) throw missingHeaderError(lowerCaseName)
  const values: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) {
      values.push(rawHeaders[index + 1] ?? '')
    }
  }
  if (values.length === 0 && isOnlyInHeaders(wire, lowerCaseName))
    throw missingHeaderError(lowerCaseName)
  return values
}

/** The option of serverless-http that fills `rawHeaders`. */
const SERVERLESS_HTTP_OPTION =
  'request: (request) => { request.rawHeaders = Object.entries(request.headers).flat().map(String) }'

/** Adapters that make requests without Node's server may fill `headers` only, with names in any letter case. */
const isOnlyInHeaders = ({ rawHeaders, headers }: WireHeaders, lowerCaseName: string): boolean =>
  headers?.[lowerCaseName] !== undefined ||
  (rawHeaders.length === 0 && Object.keys(headers ?? {}).length > 0)

const missingHeaderError = (name: string) =>
  wrongWiring(
    `${name} cannot be read: the request's rawHeaders lack what its headers hold. Whatever makes or changes the request has to fill rawHeaders as Node does. serverless-http does so with the option ${SERVERLESS_HTTP_OPTION}`,
  )

/** The core's tokens are below 2 KiB. */
export const MAX_TOKEN_LENGTH = 8192
const SCHEME = /^(?:bearer|dpop) /i

/** A token, and the scheme it was sent with: `Bearer` (RFC 6750), or `DPoP` (RFC 9449, section 7.1). */
export interface PresentedToken {
  readonly ok: true
  readonly token: string
  readonly scheme: 'Bearer' | 'DPoP'
}

/**
 * The token of exactly one `Authorization: Bearer <token>` or `Authorization: DPoP <token>`.
 *
 * @throws ServiceAuthError if the header is in `headers` but missing from `rawHeaders`.
 */
export function readToken(headers: WireHeaders): PresentedToken | Denial {
  const values = headerValues(headers, 'authorization')
  const [value] = values
  if (value === undefined) return deny('credentials_missing')
  if (values.length > 1) return deny('authorization_repeated')
  if (!SCHEME.test(value)) return deny('authorization_malformed')
  // The space follows four letters in `DPoP `, and six in `Bearer `.
  const isDpop = value.charAt(4) === ' '
  const token = value.slice(isDpop ? 'DPoP '.length : 'Bearer '.length)
  if (token.length > MAX_TOKEN_LENGTH) return deny('token_too_long')
  return { ok: true, token, scheme: isDpop ? 'DPoP' : 'Bearer' }
}

/** The content of the `Idempotency-Key` header: a key, nothing, or an invalid value. */
export type KeyHeader =
  | { readonly type: 'key'; readonly key: string }
  | { readonly type: 'missing' }
  | { readonly type: 'invalid' }

const MAX_KEY_LENGTH = 255
const VISIBLE_ASCII = /^[\x21-\x7e]+$/
/** A string of RFC 8941 (section 3.3.3), without parameters. */
const QUOTED = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/

const INVALID: KeyHeader = { type: 'invalid' }

/** Reads the key from the values of the header as they came on the wire. */
export function readKey(values: readonly string[]): KeyHeader {
  const [value] = values
  if (value === undefined) return { type: 'missing' }
  if (values.length > 1) return INVALID
  const key = value.startsWith('"') ? unquote(value) : value
  if (key === undefined || key.length > MAX_KEY_LENGTH || !VISIBLE_ASCII.test(key)) return INVALID
  return { type: 'key', key }
}

const unquote = (value: string): string | undefined =>
  QUOTED.exec(value)?.[1]?.replace(/\\(["\\])/g, '$1')
