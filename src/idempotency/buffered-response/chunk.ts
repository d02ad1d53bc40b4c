import { types } from 'node:util'

export type Callback = (error?: Error | null) => void

/** The argument of `write` or `end`. */
export interface Written {
  readonly chunk: unknown
  readonly encoding: BufferEncoding | undefined
  readonly callback: Callback | undefined
}

/** `write` and `end` take their callback in any place. */
export function writtenBy(args: readonly unknown[]): Written {
  const callback = args.find((arg) => typeof arg === 'function') as Callback | undefined
  const [chunk, encoding] = args
  return {
    chunk: typeof chunk === 'function' ? undefined : chunk,
    encoding: typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined,
    callback,
  }
}

/** What Node lets a response be written with. */
export const isContent = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === 'string' || types.isUint8Array(chunk)

/** A copy: a handler may use its buffer again once it has been called back. */
export const bytesOf = (
  chunk: string | Uint8Array,
  encoding: BufferEncoding | undefined,
): Uint8Array => (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk))

/** The error for a callback of a late write. */
export const writeAfterEnd = (): Error =>
  Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' })

/** The error for a callback of a discarded answer. */
export const writeDiscarded = (): Error =>
  Object.assign(new Error('the response was discarded'), { code: 'ERR_STREAM_DESTROYED' })

/** What Node throws where `strictContentLength` is set and a body has another length. */
export const lengthMismatch = (actual: number, announced: number): Error =>
  Object.assign(
    new Error(
      `Response body's content-length of ${actual} byte(s) does not match the content-length of ${announced} byte(s) set in header`,
    ),
    { code: 'ERR_HTTP_CONTENT_LENGTH_MISMATCH' },
  )
