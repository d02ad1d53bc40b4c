import { isObject } from '../../base/options.js'

/** What a token is bound to (`cnf`, RFC 7800). Frozen. */
export interface Confirmation {
  /** A client certificate (RFC 8705, section 3) or a key of the caller (DPoP, RFC 9449, section 6). */
  readonly kind: 'certificate' | 'dpop'
  /** Base64url of the SHA-256 digest of the certificate, or the thumbprint of the key (RFC 7638). */
  readonly thumbprint: string
}

/** What a valid token is bound to, if to anything. */
export type Binding = Confirmation | 'none'

/**
 * Reads the claim `cnf`: exactly one binding that is known here. `undefined` if it is anything else. Other
 * members are ignored (RFC 7800, section 3.1).
 */
export function readConfirmation(cnf: unknown): Confirmation | undefined {
  if (!isObject(cnf)) return undefined
  const isCertificate = Object.hasOwn(cnf, 'x5t#S256')
  if (isCertificate === Object.hasOwn(cnf, 'jkt')) return undefined
  const thumbprint = isCertificate ? cnf['x5t#S256'] : cnf['jkt']
  if (typeof thumbprint !== 'string') return undefined
  return Object.freeze({ kind: isCertificate ? 'certificate' : 'dpop', thumbprint })
}
