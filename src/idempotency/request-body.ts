import { types } from 'node:util'
import { headerValues, type WireHeaders } from '../base/raw-headers.js'

/** The parts of a request that show its body. */
export interface BodyCarrier extends WireHeaders {
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
  /** Its stream has been read, and `request.body` does not come from it, or may not. */
  | { readonly type: 'unparsed' }
  | {
      readonly type: 'parsed'
      readonly content: unknown
      /** `content-length`, where an empty object may be all that is left of a body. */
      readonly length?: number
    }

/**
 * Whether a parser has put the body into `request.body`. Media types are no evidence, because
 * what a parser reads is up to its options, but for an empty object: the parsers of Express 5 leave no
 * mark.
 *
 * @throws ServiceAuthError when the headers cannot be relied on.
 */
export function readBody(request: BodyCarrier): RequestBody {
  const length = lengthOnWire(request)
  const { body } = request
  if (length === 0) return isBlank(body) ? { type: 'none' } : { type: 'parsed', content: body }
  if (!request.readableEnded) return { type: 'unread' }
  if (!isBlank(body) || hasParserMark(request) || isWholeText(body, length)) {
    return { type: 'parsed', content: body }
  }
  const isParsed = isEmptyObject(body) && PARSED_TO_OBJECTS.has(mediaTypeOf(request))
  if (!isParsed) return { type: 'unparsed' }
  return { type: 'parsed', content: body, ...(length !== undefined && { length }) }
}

const PARSED_TO_OBJECTS: ReadonlySet<string> = new Set([
  'application/json',
  'application/x-www-form-urlencoded',
])

/** Without parameters, in lower case; empty where there is none. */
export const mediaTypeOf = ({ headers }: Pick<BodyCarrier, 'headers'>): string =>
  headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** RFC 9112, section 6.3. `undefined` for a body whose length is not announced. */
function lengthOnWire(headers: WireHeaders): number | undefined {
  if (headerValues(headers, 'transfer-encoding').length > 0) return undefined
  return Number(headerValues(headers, 'content-length')[0] ?? 0)
}

/**
 * Whether a body says nothing of what was sent. Express 4's parsers leave `{}` for a body that they
 * did not read, and apps do the same by `req.body ??= {}`, whoever reads the stream afterwards.
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

/** Whether the body may have been its own JSON text, and nothing but it: `{}` in two bytes. */
const isWholeText = (body: unknown, length: number | undefined): boolean =>
  body !== undefined && JSON.stringify(body).length === length
