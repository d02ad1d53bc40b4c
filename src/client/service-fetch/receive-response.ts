import { systemCodeOf } from '../../base/connection-fault.js'
import type { ClassifiedResponse } from './attempt-outcome.js'
import { type ByteReader, cancel, readBytes } from './read-bytes.js'

/** A response, as far as it is read within its attempt. */
export type ReceivedResponse =
  /** A response to HEAD, or with a status such as 204. */
  | { readonly type: 'bodiless'; readonly response: Response }
  | { readonly type: 'whole'; readonly response: Response; readonly body: Uint8Array<ArrayBuffer> }
  /** Server-sent events, or a body that is too large to be buffered. */
  | {
      readonly type: 'streamed'
      readonly response: Response
      readonly beginning: readonly Uint8Array[]
      readonly rest: ByteReader
    }

/**
 * Reads the body of a response, so that a truncated response counts as lost.
 *
 * @throws the error of the body.
 */
export async function receive(response: Response, maxBytes: number): Promise<ReceivedResponse> {
  const { body } = response
  if (body === null) return { type: 'bodiless', response }
  const reader: ByteReader = body.getReader()
  if (mustStream(response.headers, maxBytes)) {
    return { type: 'streamed', response, beginning: [], rest: reader }
  }
  const read = await readBytes(reader, maxBytes)
  return read.isWhole
    ? { type: 'whole', response, body: read.bytes }
    : { type: 'streamed', response, beginning: read.beginning, rest: read.rest }
}

function mustStream(headers: Headers, maxBytes: number): boolean {
  if (Number(headers.get('content-length')) > maxBytes) return true
  return /^text\/event-stream *(?:;|$)/i.test(headers.get('content-type') ?? '')
}

const NO_BYTES = new Uint8Array(0)

export function decisivePartsOf(answer: ReceivedResponse): ClassifiedResponse {
  const { status, headers } = answer.response
  if (answer.type === 'streamed') return { status, headers, body: undefined }
  return { status, headers, body: answer.type === 'whole' ? answer.body : NO_BYTES }
}

/** Cancels the rest of a response that the caller does not get. */
export function discard(answer: ReceivedResponse): void {
  if (answer.type === 'streamed') cancel(answer.rest)
}

/** Returns the response for the caller of `fetch`; `signal` aborts a streamed body. */
export function handOver(answer: ReceivedResponse, signal: AbortSignal | undefined): Response {
  if (answer.type === 'bodiless') return answer.response
  const body = answer.type === 'whole' ? answer.body.buffer : streamOf(answer, signal)
  const { url, status, statusText, headers } = answer.response
  const isConstructible = status >= 200 && status <= 599
  const response = new Response(body, {
    headers,
    status: isConstructible ? status : 200,
    statusText: PHRASE.test(statusText) ? statusText : '',
  })
  Object.defineProperty(response, 'url', { value: url })
  if (!isConstructible) {
    Object.defineProperties(response, { status: { value: status }, ok: { value: false } })
  }
  return response
}

/** The values that `Response` accepts as `statusText`; servers may send others. */
const PHRASE = /^[\t\x20-\x7e]*$/

function streamOf(
  { beginning, rest }: Extract<ReceivedResponse, { type: 'streamed' }>,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const chunks = [...beginning]
  let abort: (() => void) | undefined
  const stopListening = (): void => {
    if (abort !== undefined) signal?.removeEventListener('abort', abort)
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        abort = () => {
          controller.error(signal?.reason)
          cancel(rest, signal?.reason)
        }
        if (signal?.aborted) abort()
        else signal?.addEventListener('abort', abort, { once: true })
      },
      async pull(controller) {
        const chunk = chunks.shift()
        if (chunk !== undefined) return controller.enqueue(chunk)
        try {
          const { done, value } = await rest.read()
          if (signal?.aborted) return
          if (!done) return controller.enqueue(value)
          controller.close()
          stopListening()
        } catch (error) {
          stopListening()
          throw networkError(error)
        }
      },
      cancel(reason) {
        stopListening()
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
