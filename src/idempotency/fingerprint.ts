import { createHash } from 'node:crypto'
import { types } from 'node:util'
import { digestOfParts } from '../base/digest.js'
import type { RequestBody } from './request-body.js'

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
 * The default fingerprint: method, path and query as sent, media type and body. Two bodies are told
 * apart where their parser tells them apart; `undefined` when it left something that cannot be.
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
  // Parsers of multipart put the files elsewhere than in the body.
  if (mediaType.startsWith('multipart/') && !isText) return undefined
  const text = canonicalText(content)
  return text === undefined || length === undefined ? text : `${text}l${length};`
}

/** An absolute-form request target (RFC 9112, section 3.2.2) becomes its path and query. */
const withoutOrigin = (target: string): string =>
  target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')

/**
 * A text that no other parsed body has: unlike JSON's it keeps `-0`, infinities and bytes, and a
 * date, which validators make of a text, differs from that text. `undefined` when there is something
 * in it that no parser of JSON, forms, text or bytes makes.
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
      const keys = Object.keys(value)
      text += `{${keys.length}:`
      for (const key of keys.reverse()) pending.push(value[key], key)
    } else {
      const leaf = leafText(value)
      if (leaf === undefined) return undefined
      text += leaf
    }
  }
  return text
}

// `Object.prototype` is another object in another realm (a test runner's, say), but has no prototype there either.
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

/** By `Date`'s own functions: a subclass may have others. `undefined` for an invalid date. */
function dateText(date: Date): string | undefined {
  const time: number = Reflect.apply(Date.prototype.getTime, date, [])
  return Number.isNaN(time) ? undefined : `d${new Date(time).toISOString()};`
}
