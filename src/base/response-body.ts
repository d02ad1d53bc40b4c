/**
 * The body of a response; `undefined` if it has more than `maxBytes`. Bytes are counted after decompression, so
 * that a small response cannot grow without limit.
 */
export async function readResponseBody(
  response: Response,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
