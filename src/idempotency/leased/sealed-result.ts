import { isRecord } from '../../base/options.js'
import { KEY_ID_FORM } from './sealed-owner.js'

/** More than the header of a result that a store has encrypted takes. */
const MAX_HEADER_BYTES = 512

/** The `kid` of a result that is a compact JWE (RFC 7516, sections 4.1.6 and 7.1). */
export function keyIdOfResult({ buffer, byteOffset, byteLength }: Uint8Array): string | undefined {
  const bytes = Buffer.from(buffer, byteOffset, Math.min(byteLength, MAX_HEADER_BYTES))
  const [encodedHeader = '', ...others] = bytes.toString('latin1').split('.')
  if (others.length === 0) return undefined
  try {
    const header: unknown = JSON.parse(Buffer.from(encodedHeader, 'base64url').toString())
    const keyId = isRecord(header) ? header['kid'] : undefined
    return typeof keyId === 'string' && KEY_ID_FORM.test(keyId) ? keyId : undefined
  } catch {
    return undefined
  }
}
