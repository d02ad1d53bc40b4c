import { types } from 'node:util'

export type Callback = (error?: Error | null) => void

/** What Node lets a response be written with. */
export const isContent = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === 'string' || types.isUint8Array(chunk)

/** `write` and `end` take their callback in any place. */
export function normalise(args: readonly unknown[]): {
  chunk: unknown
  encoding: BufferEncoding | undefined
  callback: Callback | undefined
} {
  const callback = args.find((arg) => typeof arg === 'function') as Callback | undefined
  const [chunk, encoding] = args
  return {
    chunk: typeof chunk === 'function' ? undefined : chunk,
    encoding: typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined,
    callback,
  }
}

/** What a callback gets that comes too late. */
export const writeAfterEnd = (): Error =>
  Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' })

export const octetsOf = (
  chunk: string | Uint8Array,
  encoding: BufferEncoding | undefined,
): Uint8Array => (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk))
