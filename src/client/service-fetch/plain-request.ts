/** A request of which `fetch` would make nothing else. */
export interface PlainRequest {
  readonly method: string
  readonly headers: Headers
  readonly bytes: Uint8Array<ArrayBuffer> | undefined
}

interface Given {
  readonly method?: unknown
  readonly body?: unknown
}

/** What is judged here or by whoever asks. With any other member `fetch` has to judge. */
const JUDGED_MEMBERS = new Set(['body', 'headers', 'method', 'redirect', 'signal'])
/** Everything else may have an effect. */
export const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const WRITES = new Set(['DELETE', 'PATCH', 'POST', 'PUT'])
const UTF_8 = new TextEncoder()

/**
 * The request, where it is one of a usual method, with a text, bytes or nothing for a body. To make a
 * `Request` and to read its stream would cost a write a seventh of its time. The bytes are a copy.
 */
export function plainRequestOf(
  given: Given,
  headers: Headers = new Headers(),
): PlainRequest | undefined {
  const { method = 'GET', body } = given
  if (typeof method !== 'string') return undefined
  if (!Object.keys(given).every((name) => JUDGED_MEMBERS.has(name))) return undefined
  if (body === undefined) {
    const isUsual = READS.has(method) || WRITES.has(method)
    return isUsual ? { method, headers, bytes: undefined } : undefined
  }
  const bytes = WRITES.has(method) ? bytesOf(body) : undefined
  if (bytes === undefined) return undefined
  // The Fetch standard, section 5.2: a text has a media type of its own, bytes have none.
  if (typeof body === 'string' && !headers.has('content-type')) {
    headers.set('content-type', 'text/plain;charset=UTF-8')
  }
  return { method, headers, bytes }
}

function bytesOf(body: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (typeof body === 'string') return UTF_8.encode(body)
  // `fetch` refuses memory that is shared.
  if (body instanceof Uint8Array && body.buffer instanceof ArrayBuffer) return new Uint8Array(body)
  return body instanceof ArrayBuffer ? new Uint8Array(body.slice(0)) : undefined
}
