import { digestOfParts } from '../../base/digest.js'

const VERSION_8 = 0x80
const VARIANT = 0x80

/**
 * A UUID of version 8 (RFC 9562, section 5.8) of a record and a name: the first octets of SHA-256
 * but for the version and the variant.
 */
export function effectIdOf(record: string, name: string): string {
  const octets = Buffer.from(digestOfParts(['effect', record, name]), 'base64url')
  octets[6] = VERSION_8 | ((octets[6] ?? 0) & 0x0f)
  octets[8] = VARIANT | ((octets[8] ?? 0) & 0x3f)
  const hex = octets.toString('hex', 0, 16)
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
