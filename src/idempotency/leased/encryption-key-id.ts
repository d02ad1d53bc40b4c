import { isObject } from '../../base/options.js'

/** The form of an encryption key's id. */
export const KEY_ID_FORM: RegExp = /^[A-Za-z0-9._-]{1,64}$/

const SEALED_OWNER_FORM = /^jwe:([A-Za-z0-9._-]{1,64}):/

/**
 * The owner of a run whose result will be encrypted. It is stored, so that a record without a result names
 * the key that would encrypt one.
 */
export const sealedOwner = (keyId: string, owner: string): string => `jwe:${keyId}:${owner}`

/** The key id in an owner that `sealedOwner` has made; `undefined` for any other owner. */
export const keyIdOf = (owner: string): string | undefined => SEALED_OWNER_FORM.exec(owner)?.[1]

/** Longer than the header of any encrypted result. */
const MAX_HEADER_BYTES = 512

/** The `kid` of a result that is a compact JWE (RFC 7516, sections 4.1.6 and 7.1). */
export function keyIdOfResult({ buffer, byteOffset, byteLength }: Uint8Array): string | undefined {
  const bytes = Buffer.from(buffer, byteOffset, Math.min(byteLength, MAX_HEADER_BYTES))
  const [encodedHeader = '', ...others] = bytes.toString('latin1').split('.')
  if (others.length === 0) return undefined
  try {
    const header: unknown = JSON.parse(Buffer.from(encodedHeader, 'base64url').toString())
    const keyId = isObject(header) ? header['kid'] : undefined
    return typeof keyId === 'string' && KEY_ID_FORM.test(keyId) ? keyId : undefined
  } catch {
    return undefined
  }
}
