import { createHash } from 'node:crypto'

/** 144 bits: more than the 128 that keep collisions out of reach, and no padding in base64url. */
const DIGEST_BYTES = 18

/**
 * A name for the parts that no other parts have: each goes in with its length, and as UTF-16, which
 * unlike UTF-8 tells lone surrogates apart.
 */
export function digestOfParts(parts: readonly string[]): string {
  const text = parts.map((part) => `${part.length}:${part}`).join('')
  const digest = createHash('sha256').update(text, 'utf16le').digest()
  return digest.subarray(0, DIGEST_BYTES).toString('base64url')
}
