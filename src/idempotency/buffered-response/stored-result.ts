import { z } from 'zod'
import { http } from '../../base/node-http.js'
import { lazy } from '../../base/options.js'

/** A response that is stored for retries. */
export interface StoredResult {
  readonly status: number
  /** Names and values, one pair a line. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

/** Whether a response with this status has no body, whatever its handler writes. */
export const isBodyless = (status: number): boolean =>
  status === 204 || status === 304 || status < 200

/** Headers of a user agent or a connection, which are not part of a result. */
export const NEVER_STORED_HEADERS: RegExp =
  /^(set-cookie|connection|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*)$/

/** Status, headers and the length of the body. */
const headSchema = lazy(() =>
  z.tuple([
    z.int().min(200).max(999),
    z.array(z.tuple([z.string(), z.string()]).refine(isSendable)),
    z.int(),
  ]),
)

function isSendable([name, value]: readonly [string, string]): boolean {
  http.validateHeaderName(name)
  http.validateHeaderValue(name, value)
  return !NEVER_STORED_HEADERS.test(name)
}

const LINE_FEED = 0x0a

/** Encodes the head as a line of JSON, followed by the body. */
export function encodeResult({ status, headers, body }: StoredResult): Buffer {
  const head = Buffer.from(`${JSON.stringify([status, headers, body.byteLength])}\n`)
  return Buffer.concat([head, body])
}

/** Returns `undefined` unless `encodeResult` has written exactly this. */
export function decodeResult(encoded: Uint8Array): StoredResult | undefined {
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength)
  const end = bytes.indexOf(LINE_FEED)
  if (end === -1) return undefined
  try {
    const [status, headers, length] = headSchema().parse(JSON.parse(bytes.toString('utf8', 0, end)))
    const body = bytes.subarray(end + 1)
    return body.byteLength === length ? { status, headers, body } : undefined
  } catch {
    return undefined
  }
}
