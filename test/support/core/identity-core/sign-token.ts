import { sign } from 'node:crypto'
import type { SigningKey } from './signing-key.js'

/** Returns a token in compact form. The core writes the members of the header in this order. */
export function signToken(claims: object, key: SigningKey, more: object = {}): string {
  const header = { kid: key.kid, typ: 'JWT', ...more, alg: 'RS256' }
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), key.privateKey).toString('base64url')}`
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
