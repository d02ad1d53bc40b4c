/** A body that has been read until its end or until a limit. */
export type Octets =
  | { readonly isWhole: true; readonly octets: Uint8Array<ArrayBuffer> }
  /** More than the limit: what has come so far, and where the rest comes from. */
  | {
      readonly isWhole: false
      readonly beginning: readonly Uint8Array[]
      readonly rest: OctetReader
    }

export type OctetReader = ReadableStreamDefaultReader<Uint8Array>

/**
 * Reads a body of at most `maxBytes`.
 *
 * @throws what the body fails with; TypeError when it holds anything but octets.
 */
export async function readOctets(reader: OctetReader, maxBytes: number): Promise<Octets> {
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { isWhole: true, octets: joined(chunks, size) }
    if (!(value instanceof Uint8Array)) throw new TypeError('a body must be made of Uint8Arrays')
    chunks.push(value)
    size += value.byteLength
    if (size > maxBytes) return { isWhole: false, beginning: chunks, rest: reader }
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const octets = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    octets.set(chunk, at)
    at += chunk.byteLength
  }
  return octets
}

/** Wants no more of a body. Whether its source can be told does not matter. */
export function cancel(body: OctetReader | ReadableStream, reason?: unknown): void {
  body.cancel(reason).catch(() => {})
}
