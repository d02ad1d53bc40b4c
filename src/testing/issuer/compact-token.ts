import { createHmac, type KeyObject, sign } from 'node:crypto'

/** A segment before it is encoded: an object, or the text or bytes of a malformed one. */
export type Part = Readonly<Record<string, unknown>> | string | Uint8Array

/** Returns the signature of its input. */
export type Signer = (input: Buffer) => Uint8Array

export function encodePart(part: Part): string {
  const isRaw = typeof part === 'string' || part instanceof Uint8Array
  return Buffer.from(isRaw ? part : JSON.stringify(part)).toString('base64url')
}

/** Returns a compact JWS with any content (RFC 7515, section 7.1). */
export function compactToken(header: Part, payload: Part, signer: Signer): string {
  const input = `${encodePart(header)}.${encodePart(payload)}`
  return `${input}.${encodePart(signer(Buffer.from(input)))}`
}

export const rs256 =
  (key: KeyObject): Signer =>
  (input) =>
    sign('sha256', input, key)

export const es256 =
  (key: KeyObject): Signer =>
  (input) =>
    sign('sha256', input, { key, dsaEncoding: 'ieee-p1363' })

export const hs256 =
  (secret: string | Buffer): Signer =>
  (input) =>
    createHmac('sha256', secret).update(input).digest()
