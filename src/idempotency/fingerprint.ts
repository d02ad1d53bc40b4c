import { createHash } from 'node:crypto'
import { types } from 'node:util'
import { digestOfParts, textOfParts } from '../base/digest.js'
import { headerValues, type WireHeaders } from '../base/raw-headers.js'

// The two digests of a request: the key of its record, and what a retry must repeat.

/** The scope of a key, so that no caller ever gets another's result. */
export interface KeyScope {
  readonly issuer: string
  readonly audience: string
  readonly caller: string
  readonly operation: string
}

/** Derives the id of a key's record. */
export const deriveRecordId = (
  { issuer, audience, caller, operation }: KeyScope,
  key: string,
): string => digestOfParts([issuer, audience, caller, operation, key])

/** The default operation: method, mount path as sent and route pattern. */
export const operationOf = (method: string, mountPath: string, route: unknown): string =>
  textOfParts([method, mountPath, patternText(route)])

/** Returns a text that is unique to a route: a string, a regular expression, or a list of them. */
const patternText = (route: unknown): string =>
  Array.isArray(route)
    ? textOfParts(['list', ...route.map(patternText)])
    : textOfParts([typeof route, String(route)])

/** The parts of a request that its retry must repeat. */
export interface FingerprintedRequest {
  readonly method: string
  /** As sent; with scheme and host where the client sent them. */
  readonly target: string
  /** In lower case, without parameters. */
  readonly mediaType: string
  readonly body: RequestBody
}

/**
 * The default fingerprint: method, path and query as sent, media type and body. Two bodies differ if their
 * parser gives different values. Returns `undefined` if the parser left a value that cannot be compared.
 */
export function fingerprintOf(request: FingerprintedRequest): string | undefined {
  const { method, target, mediaType, body } = request
  const content = contentText(body, mediaType)
  if (content === undefined) return undefined
  return digestOfParts([method, withoutOrigin(target), mediaType, content])
}

function contentText(body: RequestBody, mediaType: string): string | undefined {
  if (body.type === 'none') return ''
  if (body.type !== 'parsed') return undefined
  const { content, length } = body
  const isText = typeof content === 'string' || types.isUint8Array(content)
  // Parsers of multipart do not put the files into the body.
  if (mediaType.startsWith('multipart/') && !isText) return undefined
  const text = canonicalText(content)
  return text === undefined || length === undefined ? text : `${text}l${length};`
}

/** An absolute-form request target (RFC 9112, section 3.2.2) becomes its path and query. */
const withoutOrigin = (target: string): string =>
  target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')

/**
 * Returns a text that is unique to the parsed body. The order of an object's members does not count, because they
 * have none (RFC 8259, section 4). Unlike JSON, the text keeps `-0`, infinities and bytes, and a date, into which
 * validators convert a text, differs from that text. Returns `undefined` if the body has a value that no parser of
 * JSON, forms, text or bytes creates.
 */
function canonicalText(body: unknown): string | undefined {
  let text = ''
  // No recursion: a body may nest deeper than the stack.
  const pending: unknown[] = [body]
  while (pending.length > 0) {
    const value = pending.pop()
    if (Array.isArray(value)) {
      text += `[${value.length}:`
      for (let index = value.length - 1; index >= 0; index -= 1) pending.push(value[index])
    } else if (isPlainObject(value)) {
      const names = Object.keys(value).sort()
      text += `{${names.length}:`
      for (const name of names) pending.push(value[name], name)
    } else {
      const leaf = leafText(value)
      if (leaf === undefined) return undefined
      text += leaf
    }
  }
  return text
}

// Each realm (a test runner's, say) has a different `Object.prototype`, but none of them has a prototype.
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function leafText(value: unknown): string | undefined {
  if (typeof value === 'string') return `s${value.length}:${value}`
  if (typeof value === 'number') return `n${Object.is(value, -0) ? '-0' : value};`
  if (typeof value === 'boolean' || value === null) return `${value};`
  if (types.isDate(value)) return dateText(value)
  if (!types.isUint8Array(value)) return undefined
  return `o${value.length}:${createHash('sha256').update(value).digest('hex')}`
}

/** Calls functions of `Date.prototype`: a subclass may override them. Returns `undefined` for an invalid date. */
function dateText(date: Date): string | undefined {
  const time: number = Reflect.apply(Date.prototype.getTime, date, [])
  return Number.isNaN(time) ? undefined : `d${new Date(time).toISOString()};`
}

/** The parts of a request that show its body. */
interface BodyCarrier extends WireHeaders {
  /** Whether the stream has been read to its end. */
  readonly readableEnded: boolean
  readonly headers: WireHeaders['headers'] & { readonly 'content-type'?: string | undefined }
  readonly body?: unknown
}

/** The state of a request's body, as far as it is known. */
export type RequestBody =
  | { readonly type: 'none' }
  /** Its stream has not been read to the end. */
  | { readonly type: 'unread' }
  /** Its stream has been read, but nothing shows that `request.body` was parsed from it. */
  | { readonly type: 'unparsed' }
  | {
      readonly type: 'parsed'
      readonly content: unknown
      /** `content-length`. Set if the content is an empty object, to which different bodies may be parsed. */
      readonly length?: number
    }

/**
 * Returns the body, and whether a parser has put it into `request.body`. The media type does not show that,
 * because each parser has an option for the types that it reads. Media type and length decide only if
 * `request.body` is blank: the parsers of Express 5 do not mark a request that they have read.
 *
 * @throws ServiceAuthError if the headers cannot be relied on.
 */
export function readRequestBody(request: BodyCarrier): RequestBody {
  const length = lengthOnWire(request)
  const { body } = request
  if (length === 0) return isBlank(body) ? { type: 'none' } : { type: 'parsed', content: body }
  if (!request.readableEnded) return { type: 'unread' }
  if (!isBlank(body) || hasParserMark(request)) return { type: 'parsed', content: body }
  if (!isEmptyObject(body) || !mayParseToEmptyObject(request, length)) return { type: 'unparsed' }
  return { type: 'parsed', content: body, ...(length !== undefined && { length }) }
}

/** The most bytes of a body without a member: `{"":1}`, the shortest object with one, has 6; a form of 0 is no body. */
const MAX_EMPTY_BYTES: ReadonlyMap<string, number> = new Map([
  ['application/json', 5],
  ['application/x-www-form-urlencoded', 0],
])

/** Whether the parser of this media type may have made an empty object of the body. In chunks or compressed, any may be one. */
function mayParseToEmptyObject(request: BodyCarrier, length: number | undefined): boolean {
  const mediaType = mediaTypeOf(request)
  const maxBytes = MAX_EMPTY_BYTES.get(mediaType)
  if (maxBytes === undefined) return mediaType.endsWith('+json') && length === '{}'.length
  return length === undefined || length <= maxBytes || isCompressed(request)
}

const isCompressed = (headers: WireHeaders): boolean =>
  headerValues(headers, 'content-encoding').some((coding) => !/^(identity)?$/i.test(coding.trim()))

/** Returns the media type without parameters, in lower case, or an empty string if there is none. */
export const mediaTypeOf = ({ headers }: Pick<BodyCarrier, 'headers'>): string =>
  headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** The body's length in bytes (RFC 9112, section 6.3). `undefined` if no header has it. */
function lengthOnWire(headers: WireHeaders): number | undefined {
  if (headerValues(headers, 'transfer-encoding').length > 0) return undefined
  return Number(headerValues(headers, 'content-length')[0] ?? 0)
}

/**
 * Whether a body contains no information. Express 4's parsers set `{}` for a body that they did not read,
 * and apps set it by `req.body ??= {}`, even if the stream is read later.
 */
const isBlank = (body: unknown): boolean =>
  body === undefined || body === null || body === '' || isEmptyObject(body)

const isEmptyObject = (body: unknown): boolean =>
  typeof body === 'object' &&
  body !== null &&
  !Array.isArray(body) &&
  !ArrayBuffer.isView(body) &&
  !types.isDate(body) &&
  Object.keys(body).length === 0

/** The parsers of Express 4 (body-parser 1) mark the request when they read it, those of 5 do not. */
const hasParserMark = (request: object): boolean =>
  (request as { readonly _body?: unknown })._body === true
