/** A body that has been read until its end or until a limit. */
export type Bytes =
  | { readonly isWhole: true; readonly bytes: Uint8Array<ArrayBuffer> }
  /** More than the limit: what has come so far, and where the rest comes from. */
  | {
      readonly isWhole: false
      readonly beginning: readonly Uint8Array[]
      readonly rest: ByteReader
    }

export type ByteReader = ReadableStreamDefaultReader<Uint8Array>

/**
 * Reads a body of at most `maxBytes`.
 *
 * @throws what the body fails with; TypeError when it holds anything but bytes.
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

/** Wants no more of a body. Whether its source can be told does not matter. */
export function cancel(body: ByteReader | ReadableStream, reason?: unknown): void {
  body.cancel(reason).catch(() => {})
}
