import { hash } from './supported-node.js'

/** 144 bits: more than the 128 that make collisions infeasible, and no padding in base64url. */
const DIGEST_LENGTH = 24

/** Joins parts so that no other parts give the same text: each is preceded by its length. */
export function textOfParts(parts: readonly string[]): string {
  let text = ''
  for (const part of parts) text += `${part.length}:${part}`
  return text
}

/**
 * A digest of the parts in 24 characters. In UTF-8 all lone surrogates are the same bytes, so a text that
 * has some is digested as UTF-16. Its bytes equal no UTF-8 text: only UTF-16 has a zero byte after a digit.
 */
export function digestOfParts(parts: readonly string[]): string {
  const text = textOfParts(parts)
  const bytes = text.isWellFormed() ? text : Buffer.from(text, 'utf16le')
  return hash('sha256', bytes, 'base64url').slice(0, DIGEST_LENGTH)
}
