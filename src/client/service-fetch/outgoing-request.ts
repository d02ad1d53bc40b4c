import { randomUUID } from 'node:crypto'
import { readKey } from '../../base/idempotency-key.js'
import { type ByteReader, cancel, readBytes } from './receive-response.js'
import {
  assertRedirect,
  initMembers,
  type Members,
  parseHeaders,
  plainRequestOf,
  READS,
  requestError,
} from './request-init.js'
import type { FetchSettings } from './service-fetch-options.js'

type Input = Parameters<typeof globalThis.fetch>[0]

/** A request that has been checked, with a body that may still have to be read. */
export interface OutgoingRequest {
  readonly method: string
  readonly url: string
  readonly isWrite: boolean
  readonly idempotencyKey: string | undefined
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined
  readonly refusesRedirects: boolean
  readonly hasBody: boolean
  /**
   * Reads the body once, so that every attempt sends the same bytes.
   *
   * @throws TypeError if it is larger than `maxBodyBytes` or cannot be read.
   */
  readBody(): Promise<void>
  abandonBody(): void
  /** Sends the request with this token, and the proof that goes with it if the token is bound to a key. */
  send(token: string, proof: string | undefined, signal: AbortSignal): Promise<Response>
}

/**
 * Parses the arguments of a `fetch` call.
 *
 * @throws TypeError for arguments that `fetch` itself rejects, an origin that is not in the settings, an
 * `authorization` or `dpop` header, a `redirect` mode that would follow redirects, or an invalid idempotency key.
 */
export function outgoingRequest(
  settings: FetchSettings,
  input: Input,
  init: RequestInit | undefined,
): OutgoingRequest {
  const members = initMembers(init)
  const signal = signalOf(input, members)
  assertRedirect(members.redirect)
  const prepared = prepare(settings, input, members)
  const { headers, method, bodyBytes } = prepared
  for (const name of ['authorization', 'dpop']) {
    if (headers.has(name)) throw requestError(`${name} is set by serviceFetch`)
  }
  const isWrite = !READS.has(method)
  const idempotencyKey = keyOf(headers, isWrite && settings.idempotencyKey === 'auto')
  // The copy of a caller's `Request` is sent as a `Request`, which keeps its class; see `copyOf`.
  const target = isRequest(prepared) ? prepared : prepared.url
  const reader: ByteReader | undefined = prepared.body?.getReader()
  let body = bodyBytes
  return {
    method,
    url: prepared.url,
    isWrite,
    idempotencyKey,
    signal,
    refusesRedirects: members.redirect === 'error',
    hasBody: reader !== undefined,
    async readBody() {
      if (reader !== undefined) body = await readWhole(reader, settings.maxBodyBytes)
    },
    abandonBody() {
      if (reader !== undefined) cancel(reader)
    },
    send(token, proof, attemptSignal) {
      // Copied, because the aborted `fetch` of an earlier attempt may still be reading its headers.
      const attemptHeaders = new Headers(headers)
      attemptHeaders.set('authorization', `${proof === undefined ? 'Bearer' : 'DPoP'} ${token}`)
      if (proof !== undefined) attemptHeaders.set('dpop', proof)
      const overrides = { method, headers: attemptHeaders, body, redirect: 'manual' }
      const attemptInit = { ...members, ...overrides, signal: attemptSignal }
      return settings.fetch(target, attemptInit as RequestInit)
    },
  }
}

/** A `Request` of the caller's class, or the parts of a request. */
interface Prepared extends Pick<Request, 'url' | 'method' | 'headers'> {
  /** The stream, which has not been read yet. */
  readonly body?: Request['body']
  readonly bodyBytes?: Uint8Array<ArrayBuffer> | undefined
}

/** Builds the request as `fetch` would: method, headers with the body's media type, and the body. */
function prepare(settings: FetchSettings, input: Input, members: Members): Prepared {
  const headers = parseHeaders(members)
  const overrides = { headers, redirect: 'manual', signal: null, duplex: 'half' }
  const init = { ...members, ...overrides } as RequestInit
  if (isRequest(input)) {
    const request = copyOf(input, init, settings)
    assertOrigin(settings, new URL(request.url))
    return request
  }
  const url = parseAddress(String(input))
  assertOrigin(settings, url)
  const plain = plainRequestOf(members, headers)
  if (plain === undefined) {
    const { method, headers: complete, body } = new Request(url, init)
    return { url: url.href, method, headers: complete, body }
  }
  assertSize(plain.bodyBytes, settings.maxBodyBytes)
  return { url: url.href, ...plain }
}

/** Accepts the global class and those of other implementations, which all have the same tag. */
const isRequest = (value: unknown): value is Request =>
  value instanceof Request || Object.prototype.toString.call(value) === '[object Request]'

/** Keeps the class of the request: the `fetch` of that class accepts no other, and undici's keeps the `dispatcher`. */
function copyOf(input: Request, init: RequestInit, { isGlobalFetch }: FetchSettings): Request {
  const RequestClass = input.constructor as typeof Request
  if (input instanceof Request) return new Request(input, init)
  if (isGlobalFetch) {
    throw requestError(
      'the Request is of another implementation of fetch: pass that one as the option `fetch`',
    )
  }
  const copy = new RequestClass(input, init)
  if (copy.body === null || typeof copy.body.getReader === 'function') return copy
  throw requestError('the body of the Request must be a ReadableStream')
}

function parseAddress(address: string): URL {
  let url: URL
  try {
    url = new URL(address)
  } catch {
    throw requestError('the address must be an absolute URL')
  }
  // `fetch` would also reject it, but with an error that repeats the password.
  if (url.username === '' && url.password === '') return url
  throw requestError('the address must not contain a user name or password')
}

/** Rejects a `blob:` URL, because its origin is that of the page that created it. */
function assertOrigin({ origins }: FetchSettings, { protocol, origin }: URL): void {
  if (protocol === 'blob:' || !origins.has(origin))
    throw requestError(`${origin} is not in the option \`origins\``)
}

function signalOf(input: Input, members: Members): AbortSignal | undefined {
  const signal = members.signal ?? undefined
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw requestError('signal must be an AbortSignal')
  }
  if (members.signal !== undefined || !isRequest(input)) return signal
  return input.signal
}

/** Returns the caller's key. If there is none and `isAutomatic`, adds a new one to the headers. */
function keyOf(headers: Headers, isAutomatic: boolean): string | undefined {
  const value = headers.get('idempotency-key')
  if (value !== null) {
    if (readKey([value]).type === 'key') return value
    throw requestError('idempotency-key must be one key of 1 to 255 visible ASCII characters')
  }
  if (!isAutomatic) return undefined
  const key = randomUUID()
  headers.set('idempotency-key', key)
  return key
}

async function readWhole(reader: ByteReader, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const { bytes, isWhole } = await readBytes(reader, maxBytes).catch((error: unknown) => {
    throw requestError('the body could not be read', { cause: error })
  })
  if (isWhole) return bytes
  cancel(reader)
  throw tooLarge(maxBytes)
}

function assertSize(bytes: Uint8Array | undefined, maxBytes: number): void {
  if (bytes !== undefined && bytes.byteLength > maxBytes) throw tooLarge(maxBytes)
}

const tooLarge = (maxBytes: number): TypeError =>
  requestError(`the body is larger than maxBodyBytes, ${maxBytes}`)
