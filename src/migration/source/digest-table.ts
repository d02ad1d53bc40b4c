import { textOfParts } from '../../base/digest.js'
import { hash } from '../../base/supported-node.js'

/** Maps texts to numbers. Keeps 128 bits of the SHA-256 of a text: an entry takes 60 to 85 bytes, however long the text is. */
export function createDigestTable() {
  const numbers = new Map<string, number>()
  return {
    /** If the text has a number already, keeps and returns the earlier number. */
    add(text: string, number: number): number | undefined {
      const digest = digestOf(text)
      const earlier = numbers.get(digest)
      if (earlier === undefined) numbers.set(digest, number)
      return earlier
    },
    find: (text: string): number | undefined => numbers.get(digestOf(text)),
  }
}

/**
 * Hashes a text with lone surrogates as UTF-16, because in UTF-8 all lone surrogates have the same bytes.
 * The digest is a binary string: it takes half of the memory of a hexadecimal one.
 */
function digestOf(text: string): string {
  const part = textOfParts([text])
  const digest = hash('sha256', part.isWellFormed() ? part : Buffer.from(part, 'utf16le'), 'buffer')
  return digest.toString('latin1', 0, DIGEST_BYTES)
}

const DIGEST_BYTES = 16
