/** A request that `fetch` would send exactly like this. */
export interface PlainRequest {
  readonly method: string
  readonly headers: Headers
  readonly bodyBytes: Uint8Array<ArrayBuffer> | undefined
}

interface Members {
  readonly method?: unknown
  readonly body?: unknown
}

/** The members that this module or its caller checks. With any other, `fetch` must decide. */
const CHECKED_MEMBERS = new Set(['body', 'headers', 'method', 'redirect', 'signal'])
/** Methods without effects. All other methods may have some. */
export const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const WRITES = new Set(['DELETE', 'PATCH', 'POST', 'PUT'])
const UTF_8 = new TextEncoder()

/**
 * Returns the request if it has a usual method and a string, bytes or no body. This avoids creating a
 * `Request` and reading its stream, which would take a seventh of the time of a write. The bytes are a
 * copy.
 */
export function plainRequestOf(
  members: Members,
  headers: Headers = new Headers(),
): PlainRequest | undefined {
  const { method = 'GET', body } = members
  if (typeof method !== 'string') return undefined
  if (!Object.keys(members).every((name) => CHECKED_MEMBERS.has(name))) return undefined
  if (body === undefined) {
    const isUsual = READS.has(method) || WRITES.has(method)
    return isUsual ? { method, headers, bodyBytes: undefined } : undefined
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
  // `fetch` rejects shared memory.
  if (body instanceof Uint8Array && body.buffer instanceof ArrayBuffer) return new Uint8Array(body)
  return body instanceof ArrayBuffer ? new Uint8Array(body.slice(0)) : undefined
}
