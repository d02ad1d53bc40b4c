import { z } from 'zod'

/** A response as it is kept for retries. */
export interface StoredResult {
  readonly status: number
  /** Names and values, one pair a line. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

const headSchema = z.tuple([z.int().min(100).max(999), z.array(z.tuple([z.string(), z.string()]))])

const LINE_FEED = 0x0a

/** The head as a line of JSON, then the body as it is. */
export function encodeResult({ status, headers, body }: StoredResult): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify([status, headers])}\n`), body])
}

/** `undefined` for what `encodeResult` has not made. */
export function decodeResult(encoded: Uint8Array): StoredResult | undefined {
  const octets = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength)
  const end = octets.indexOf(LINE_FEED)
  if (end === -1) return undefined
  try {
    const [status, headers] = headSchema.parse(JSON.parse(octets.toString('utf8', 0, end)))
    return { status, headers, body: octets.subarray(end + 1) }
  } catch {
    return undefined
  }
}
