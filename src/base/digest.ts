import { hash } from 'node:crypto'

/** 144 bits: more than the 128 that keep collisions out of reach, and no padding in base64url. */
const DIGEST_LENGTH = 24

/** A text for the parts that no other parts have: each goes in with its length. */
export function textOfParts(parts: readonly string[]): string {
  let text = ''
  for (const part of parts) text += `${part.length}:${part}`
  return text
}

/**
 * The same in 24 characters. UTF-8 cannot tell lone surrogates apart, UTF-16 can; and since a text of
 * parts begins with digits and a colon, none reads in one like another in the other.
 */
export function digestOfParts(parts: readonly string[]): string {
  const text = textOfParts(parts)
  const octets = text.isWellFormed() ? text : Buffer.from(text, 'utf16le')
  return hash('sha256', octets, 'base64url').slice(0, DIGEST_LENGTH)
}
