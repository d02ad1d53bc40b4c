import { randomUUID } from 'node:crypto'
import { readKey } from '../../base/idempotency-key.js'
import { plainRequestOf, READS } from './plain-request.js'
import { type ByteReader, cancel, readBytes } from './read-bytes.js'
import { assertRedirect, fault, headersOf, type Members, membersOf } from './request-init.js'
import type { CallPlan } from './service-fetch-options.js'

type Input = Parameters<typeof globalThis.fetch>[0]

/** A request that may be sent, checked, with a body that has still to be read. */
export interface OutgoingRequest {
  readonly isWrite: boolean
  readonly idempotencyKey: string | undefined
  /** The caller's. */
  readonly signal: AbortSignal | undefined
  readonly refusesRedirects: boolean
  readonly hasBody: boolean
  /**
   * Reads the body once; every attempt sends the same bytes.
   *
   * @throws TypeError when it is larger than `maxBodyBytes` or fails.
   */
  readBody(): Promise<void>
  abandonBody(): void
  /** Sends it with this token. */
  send(token: string, signal: AbortSignal): Promise<Response>
}

/**
 * Reads what `fetch` was called with.
 *
 * @throws TypeError for what `fetch` itself refuses, an origin that is not among those of the plan, an
 * `authorization` header, a `redirect` that would follow, an idempotency key that is none.
 */
export function outgoingRequest(
  plan: CallPlan,
  input: Input,
  init: RequestInit | undefined,
): OutgoingRequest {
  const given = membersOf(init)
  const signal = signalOf(input, given)
  assertRedirect(given.redirect)
  const prepared = prepare(plan, input, given)
  const { headers, method, bytes } = prepared
  if (headers.has('authorization')) throw fault('authorization is set by serviceFetch')
  const isWrite = !READS.has(method)
  const idempotencyKey = keyOf(headers, isWrite && plan.idempotencyKey === 'auto')
  const target = isRequest(prepared) ? prepared : prepared.url
  const reader: ByteReader | undefined = prepared.body?.getReader()
  let body = bytes
  return {
    isWrite,
    idempotencyKey,
    signal,
    refusesRedirects: given.redirect === 'error',
    hasBody: reader !== undefined,
    async readBody() {
      if (reader !== undefined) body = await readWhole(reader, plan.maxBodyBytes)
    },
    abandonBody() {
      if (reader !== undefined) cancel(reader)
    },
    send(token, ended) {
      headers.set('authorization', `Bearer ${token}`)
      const own = { method, headers, body, redirect: 'manual', signal: ended }
      return plan.fetch(target, { ...given, ...own } as RequestInit)
    },
  }
}

interface Prepared extends Pick<Request, 'url' | 'method' | 'headers'> {
  /** What has still to be read. */
  readonly body?: Request['body']
  readonly bytes?: Uint8Array<ArrayBuffer> | undefined
}

/** What `fetch` would make of it: method, headers with the body's media type, the body as bytes. */
function prepare(plan: CallPlan, input: Input, given: Members): Prepared {
  const headers = headersOf(given)
  const own = { headers, redirect: 'manual', signal: null, duplex: 'half' }
  const init = { ...given, ...own } as RequestInit
  if (isRequest(input)) {
    const request = copyOf(input, init, plan)
    assertOrigin(plan, new URL(request.url))
    return request
  }
  const url = parseAddress(String(input))
  assertOrigin(plan, url)
  const plain = plainRequestOf(given, headers)
  if (plain === undefined) {
    const { method, headers: complete, body } = new Request(url, init)
    return { url: url.href, method, headers: complete, body }
  }
  assertSize(plain.bytes, plan.maxBodyBytes)
  return { url: url.href, ...plain }
}

/** Of the global class, or of another implementation's, which has the same name in any version. */
const isRequest = (value: unknown): value is Request =>
  value instanceof Request || Object.prototype.toString.call(value) === '[object Request]'

/** A copy by the class of the request: `fetch` takes none but its own, which alone knows its dispatcher. */
function copyOf(input: Request, init: RequestInit, { isGlobalFetch }: CallPlan): Request {
  const Own = input.constructor as typeof Request
  if (input instanceof Request) return new Request(input, init)
  if (isGlobalFetch) {
    throw fault(
      'the Request is not one of the global fetch: give the fetch that it belongs to as the option fetch',
    )
  }
  const copy = new Own(input, init)
  if (copy.body === null || typeof copy.body.getReader === 'function') return copy
  throw fault('the body of the Request must be a ReadableStream')
}

function parseAddress(address: string): URL {
  let url: URL
  try {
    url = new URL(address)
  } catch {
    throw fault('the address must be an absolute URL')
  }
  // `fetch` would refuse it, too, with an error that repeats the password.
  if (url.username === '' && url.password === '') return url
  throw fault('the address must not hold a user name or password')
}

/** A `blob:` address has the origin of the page that made it. */
function assertOrigin({ origins }: CallPlan, { protocol, origin }: URL): void {
  if (protocol === 'blob:' || !origins.has(origin))
    throw fault(`${origin} is not one of its origins`)
}

function signalOf(input: Input, given: Members): AbortSignal | undefined {
  const signal = given.signal ?? undefined
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw fault('signal must be an AbortSignal')
  }
  if (given.signal !== undefined || !isRequest(input)) return signal
  return input.signal
}

/** The caller's own key, or one that is made for this call. */
function keyOf(headers: Headers, isMade: boolean): string | undefined {
  const value = headers.get('idempotency-key')
  if (value !== null) {
    if (readKey([value]).type === 'key') return value
    throw fault('idempotency-key must be one key of 1 to 255 visible ASCII characters')
  }
  if (!isMade) return undefined
  const key = randomUUID()
  headers.set('idempotency-key', key)
  return key
}

async function readWhole(reader: ByteReader, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const read = await readBytes(reader, maxBytes).catch((error: unknown) => {
    throw fault('the body could not be read', { cause: error })
  })
  if (read.isWhole) return read.bytes
  cancel(reader)
  throw tooLarge(maxBytes)
}

function assertSize(bytes: Uint8Array | undefined, maxBytes: number): void {
  if (bytes !== undefined && bytes.byteLength > maxBytes) throw tooLarge(maxBytes)
}

const tooLarge = (maxBytes: number): TypeError =>
  fault(`the body is larger than maxBodyBytes, ${maxBytes}`)
