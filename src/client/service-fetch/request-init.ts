/** The members of `RequestInit`, and those that Node's `fetch` adds. */
const MEMBERS = [
  'body',
  'cache',
  'credentials',
  'dispatcher',
  'headers',
  'integrity',
  'keepalive',
  'method',
  'mode',
  'priority',
  'redirect',
  'referrer',
  'referrerPolicy',
  'signal',
  'window',
] as const

export type Members = { readonly [name in (typeof MEMBERS)[number]]?: unknown }

/** Reads each member once, also inherited ones, as `fetch` does, because the object may change later. */
export function initMembers(init: RequestInit | null | undefined): Members {
  const members: Record<string, unknown> = {}
  if (init === undefined || init === null) return members
  if (typeof init !== 'object') throw requestError('init must be an object')
  for (const name of MEMBERS) {
    const value = (init as Members)[name]
    if (value !== undefined) members[name] = value
  }
  return members
}

/** Replaces the error of `Headers`, which would repeat an invalid value, because that may be secret. */
export function parseHeaders({ headers }: Members): Headers | undefined {
  try {
    return headers === undefined
      ? undefined
      : new Headers(headers as ConstructorParameters<typeof Headers>[0])
  } catch {
    throw requestError('headers must be names and values of headers')
  }
}

export function assertRedirect(redirect: unknown): void {
  if (redirect === undefined || redirect === 'manual' || redirect === 'error') return
  throw requestError("redirect must be 'manual' or 'error': the token is for no other address")
}

/** Creates the error for a request that must not be sent. */
export const requestError = (what: string, options?: ErrorOptions): TypeError =>
  new TypeError(`serviceFetch: ${what}`, options)

/** A request that `fetch` would send exactly like this. */
interface PlainRequest {
  readonly method: string
  readonly headers: Headers
  readonly bodyBytes: Uint8Array<ArrayBuffer> | undefined
}

/** The members that this module or its caller checks. Any other must be read by a `Request`. */
const CHECKED_MEMBERS = new Set(['body', 'headers', 'method', 'redirect', 'signal'])
/** Methods without effects. All other methods may have some. */
export const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const WRITES = new Set(['DELETE', 'PATCH', 'POST', 'PUT'])
const UTF_8 = new TextEncoder()

/**
 * Returns the request if its method is in `READS` or `WRITES` and its body is a string, bytes or absent; `undefined`
 * if only a `Request` can read it. This avoids creating a `Request` and reading its stream, which would take a
 * seventh of the time of a write. The bytes are a copy.
 */
export function plainRequestOf(
  members: Members,
  headers: Headers = new Headers(),
): PlainRequest | undefined {
  const { method = 'GET', body } = members
  if (typeof method !== 'string') return undefined
  if (!Object.keys(members).every((name) => CHECKED_MEMBERS.has(name))) return undefined
  if (body === undefined) {
    const isKnown = READS.has(method) || WRITES.has(method)
    return isKnown ? { method, headers, bodyBytes: undefined } : undefined
  }
  const bodyBytes = WRITES.has(method) ? bytesOf(body) : undefined
  if (bodyBytes === undefined) return undefined
  // The Fetch standard, section 5.2: a string implies a media type, bytes imply none.
  if (typeof body === 'string' && !headers.has('content-type')) {
    headers.set('content-type', 'text/plain;charset=UTF-8')
  }
  return { method, headers, bodyBytes }
}

function bytesOf(body: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (typeof body === 'string') return UTF_8.encode(body)
  // `fetch` rejects bytes in shared memory.
  if (body instanceof Uint8Array && body.buffer instanceof ArrayBuffer) return new Uint8Array(body)
  return body instanceof ArrayBuffer ? new Uint8Array(body.slice(0)) : undefined
}
