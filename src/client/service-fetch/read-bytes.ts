/** A body that was read to its end or to a limit. */
type Bytes =
  | { readonly isWhole: true; readonly bytes: Uint8Array<ArrayBuffer> }
  /** Larger than the limit: the chunks read so far, and the reader of the rest. */
  | {
      readonly isWhole: false
      readonly beginning: readonly Uint8Array[]
      readonly rest: ByteReader
    }

export type ByteReader = ReadableStreamDefaultReader<Uint8Array>

/**
 * Reads a body of at most `maxBytes`.
 *
 * @throws the error of the body; TypeError if a chunk is not a Uint8Array.
 */
export async function readBytes(reader: ByteReader, maxBytes: number): Promise<Bytes> {
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { isWhole: true, bytes: joined(chunks, size) }
    if (!(value instanceof Uint8Array)) throw new TypeError('a body must be made of Uint8Arrays')
    chunks.push(value)
    size += value.byteLength
    if (size > maxBytes) return { isWhole: false, beginning: chunks, rest: reader }
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes
}

/** Cancels a body and ignores errors of its source. */
export function cancel(body: ByteReader | ReadableStream, reason?: unknown): void {
  body.cancel(reason).catch(() => {})
}
