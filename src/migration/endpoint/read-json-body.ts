import type { IncomingMessage } from 'node:http'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { headerValues } from '../../base/raw-headers.js'

const JSON_IN_UTF8 = /^application\/json[\t ]*(?:;[\t ]*charset=(?:utf-8|"utf-8")[\t ]*)?$/i

/** Whether the headers declare JSON in UTF-8 (RFC 8259), with a single `Content-Type` and no content coding. */
export function isJsonInUtf8(request: IncomingMessage): boolean {
  const [type, ...otherTypes] = headerValues(request, 'content-type')
  const codings = headerValues(request, 'content-encoding')
  return (
    type !== undefined &&
    otherTypes.length === 0 &&
    JSON_IN_UTF8.test(type) &&
    codings.every((coding) => coding.toLowerCase() === 'identity')
  )
}

/** The bytes of a body, or why it could not be read. */
export type BodyRead =
  | { readonly type: 'whole'; readonly bytes: Buffer }
  | { readonly type: 'too_large' }
  /** The connection was closed, or the signal aborted. */
  | { readonly type: 'cut_off' }

/**
 * Reads at most `maxBytes` bytes. Later bytes, and bytes after the signal aborted, are discarded.
 *
 * @throws ServiceAuthError if the body was read before.
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<BodyRead> {
  if (request.readableDidRead || request.readableEnded) {
    throw wrongWiring('migrationEndpoint reads the body itself: no parser may stand before it')
  }
  if (Number(headerValues(request, 'content-length')[0] ?? 0) > maxBytes) {
    request.resume()
    return { type: 'too_large' }
  }
  return collect(request, maxBytes, signal)
}

function collect(
  request: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<BodyRead> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (read: BodyRead): void => {
      request.off('data', take).off('end', end).off('close', cutOff).off('error', cutOff)
      // A later `error` event needs a listener.
      request.on('error', () => {})
      signal.removeEventListener('abort', cutOff)
      request.resume()
      resolve(read)
    }
    const take = (chunk: Buffer): void => {
      size += chunk.byteLength
      if (size > maxBytes) settle({ type: 'too_large' })
      else chunks.push(chunk)
    }
    const end = (): void => settle({ type: 'whole', bytes: Buffer.concat(chunks) })
    const cutOff = (): void => settle({ type: 'cut_off' })
    if (request.destroyed || signal.aborted) {
      cutOff()
      return
    }
    request.on('data', take).on('end', end).on('close', cutOff).on('error', cutOff)
    signal.addEventListener('abort', cutOff)
  })
}
