import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'

/**
 * Says of a header value whether a key of the set has signed it. By node:crypto alone: the package
 * verifies with jose, and an oracle on the same library would share its faults.
 */
export async function signatureOracle(jwksUri: string): Promise<(value: string) => boolean> {
  const { keys } = (await (await fetch(jwksUri)).json()) as { keys: JsonWebKey[] }
  const publicKeys = keys.map((key) => createPublicKey({ key, format: 'jwk' }))
  return (value) => publicKeys.some((key) => isSignedBy(key, value))
}

function isSignedBy(key: KeyObject, value: string): boolean {
  const match = /^bearer ([\w-]+\.[\w-]+)\.([\w-]+)$/i.exec(value.trim())
  if (match === null) return false
  const signature = Buffer.from(match[2] ?? '', 'base64url')
  if (signature.toString('base64url') !== match[2]) return false
  return verify('sha256', Buffer.from(match[1] ?? ''), key, signature)
}
