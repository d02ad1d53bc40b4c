import { onAbort } from '../../base/deadline.js'
import { systemCodeOf } from '../../base/fetch.js'
import type { ClassifiedResponse } from './retry-decision.js'

/** A response, as far as it is read within its attempt. */
export interface ReceivedResponse {
  readonly response: Response
  /** The body, as far as it has been read. */
  readonly bytes: Buffer<ArrayBuffer>
  /** The rest of server-sent events, or of a body that is too large to be buffered. */
  readonly rest: ByteReader | undefined
}

export type ByteReader = ReadableStreamDefaultReader<Uint8Array>

/**
 * Reads the body of a response, so that a truncated response counts as lost.
 *
 * @throws the error of the body.
 */
export async function receive(response: Response, maxBytes: number): Promise<ReceivedResponse> {
  // Responses to HEAD and with a status such as 204 have no body.
  if (response.body === null) return { response, bytes: NO_BYTES, rest: undefined }
  // No `Response` can have it.
  if (response.status > 599) {
    cancel(response.body)
    throw new TypeError('the status is not one of HTTP')
  }
  const reader: ByteReader = response.body.getReader()
  if (mustStream(response.headers, maxBytes)) return { response, bytes: NO_BYTES, rest: reader }
  const { bytes, isWhole } = await readBytes(reader, maxBytes)
  return { response, bytes, rest: isWhole ? undefined : reader }
}

const NO_BYTES = Buffer.alloc(0)

function mustStream(headers: Headers, maxBytes: number): boolean {
  if (Number(headers.get('content-length')) > maxBytes) return true
  return /^text\/event-stream *(?:;|$)/i.test(headers.get('content-type') ?? '')
}

/**
 * Reads a body to its end, or until it is larger than `maxBytes`.
 *
 * @throws the error of the body; TypeError if a chunk is not a Uint8Array.
 */
export async function readBytes(
  reader: ByteReader,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer<ArrayBuffer>; readonly isWhole: boolean }> {
  const chunks: Uint8Array[] = []
  let size = 0
  while (size <= maxBytes) {
    const { done, value } = await reader.read()
    if (done) return { bytes: Buffer.concat(chunks), isWhole: true }
    if (!(value instanceof Uint8Array)) throw new TypeError('a body must be made of Uint8Arrays')
    chunks.push(value)
    size += value.byteLength
  }
  return { bytes: Buffer.concat(chunks), isWhole: false }
}

/** Cancels a body and ignores errors of its source. */
export function cancel(body: ByteReader | ReadableStream, reason?: unknown): void {
  body.cancel(reason).catch(() => {})
}

export function decisivePartsOf({ response, bytes, rest }: ReceivedResponse): ClassifiedResponse {
  const { status, headers } = response
  return { status, headers, body: rest === undefined ? bytes : undefined }
}

/** Cancels the rest of a response that the caller does not get. */
export function discard({ rest }: ReceivedResponse): void {
  if (rest !== undefined) cancel(rest)
}

/** Returns the response for the caller of `fetch`; `signal` aborts a streamed body. */
export function handOver(answer: ReceivedResponse, signal: AbortSignal | undefined): Response {
  const { response: received, bytes, rest } = answer
  if (received.body === null) return received
  const body = rest === undefined ? bytes : streamOf(bytes, rest, signal)
  const { url, status, headers } = received
  const statusText = PHRASE.test(received.statusText) ? received.statusText : ''
  const response = new Response(body, { headers, status, statusText })
  return Object.defineProperty(response, 'url', { value: url })
}

/** The values that `Response` accepts as `statusText`; servers may send others. */
const PHRASE = /^[\t\x20-\x7e]*$/

function streamOf(
  beginning: Uint8Array,
  rest: ByteReader,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  let stopListening: (() => void) | undefined
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (beginning.byteLength > 0) controller.enqueue(beginning)
        if (signal === undefined) return
        const abort = (): void => {
          controller.error(signal.reason)
          cancel(rest, signal.reason)
        }
        if (signal.aborted) abort()
        else stopListening = onAbort(signal, abort)
      },
      async pull(controller) {
        try {
          const { done, value } = await rest.read()
          if (signal?.aborted) return
          if (!done) return controller.enqueue(value)
          controller.close()
          stopListening?.()
        } catch (error) {
          stopListening?.()
          throw networkError(error)
        }
      },
      cancel(reason) {
        stopListening?.()
        return rest.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Returns the error for a missing or incomplete response. Of the error of `fetch`, only Node's error code
 * (`ECONNREFUSED`) remains, because the error can hold received data, and a server may send the token back.
 */
export function networkError(thrown: unknown): TypeError {
  const code = systemCodeOf(thrown)
  const error = new TypeError(`the answer was lost${code === undefined ? '' : `: ${code}`}`)
  return code === undefined ? error : Object.assign(error, { code })
}
