import { hash } from './supported-node.js'

/** The members of private and symmetric keys (RFC 7518, section 6). */
export const PRIVATE_MEMBERS: readonly string[] = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** The public key of a P-256 key pair (RFC 7518, section 6.2.1). */
export interface P256Key {
  readonly crv: 'P-256'
  readonly kty: 'EC'
  readonly x: string
  readonly y: string
}

/** The thumbprint of RFC 7638: a digest of the required members in the order of their names. */
export const thumbprintOf = ({ crv, kty, x, y }: P256Key): string =>
  hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url')
