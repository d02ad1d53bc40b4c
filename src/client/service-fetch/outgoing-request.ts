import { randomUUID } from 'node:crypto'
import { readKey } from '../../base/raw-headers.js'
import { type ByteReader, cancel, readBytes } from './receive-response.js'
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

/** Methods without effects. All other methods may have some. */
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Of any realm. Inherited members and getters of a class would not be copied for an attempt. */
const isPlain = (value: unknown): boolean => {
  const prototype: unknown = typeof value === 'object' ? Object.getPrototypeOf(value) : undefined
  return (
    prototype === null || (prototype !== undefined && Object.getPrototypeOf(prototype) === null)
  )
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
  if (init && !isPlain(init) && !(init instanceof Request)) {
    throw requestError('init must be a plain object or a Request')
  }
  const signal = signalOf(input, init)
  assertRedirect(init?.redirect)
  const request = requestOf(input, init)
  const { method, url, headers } = request
  assertOrigin(settings, new URL(url))
  for (const name of ['authorization', 'dpop']) {
    if (headers.has(name)) throw requestError(`${name} is set by serviceFetch`)
  }
  const isWrite = !READS.has(method)
  const idempotencyKey = keyOf(headers, isWrite && settings.idempotencyKey === 'auto')
  // What the caller has given as a `Request` is known to a `Request` alone. Not every `fetch` knows this class.
  const target = input instanceof Request || init instanceof Request ? request : url
  // Copied, because the caller may change it later.
  const members = { ...init }
  const reader: ByteReader | undefined = request.body?.getReader()
  let body: Uint8Array<ArrayBuffer> | undefined
  return {
    method,
    url,
    isWrite,
    idempotencyKey,
    signal,
    refusesRedirects: init?.redirect === 'error',
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

/** Builds the request as `fetch` would: method, headers with the body's media type, and the body. */
function requestOf(input: Input, init: RequestInit | undefined): Request {
  const address = input instanceof Request ? input : parseAddress(String(input))
  // As `init`, a `Request` has its members on its prototype.
  const given = init instanceof Request ? new Request(address, init) : address
  const headers = parseHeaders(init?.headers)
  const overrides = { headers, redirect: 'manual', signal: null, duplex: 'half' }
  return new Request(given, { ...init, ...overrides } as RequestInit)
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

/** `null` in `init` replaces the signal of a `Request` by none. */
function signalOf(input: Input, init: RequestInit | undefined): AbortSignal | undefined {
  const inherited = input instanceof Request ? input.signal : undefined
  const signal = init?.signal === undefined ? inherited : (init.signal ?? undefined)
  if (signal === undefined || signal instanceof AbortSignal) return signal
  throw requestError('signal must be an AbortSignal')
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
  throw requestError(`the body is larger than maxBodyBytes, ${maxBytes}`)
}

/** Replaces the error of `Headers`, which would repeat an invalid value, because that may be secret. */
function parseHeaders(headers: RequestInit['headers']): Headers | undefined {
  try {
    return headers && new Headers(headers)
  } catch {
    throw requestError('headers must be names and values of headers')
  }
}

function assertRedirect(redirect: unknown): void {
  if (redirect === undefined || redirect === 'manual' || redirect === 'error') return
  throw requestError("redirect must be 'manual' or 'error': the token is for no other address")
}

/** Creates the error for a request that must not be sent. */
const requestError = (what: string, options?: ErrorOptions): TypeError =>
  new TypeError(`serviceFetch: ${what}`, options)
