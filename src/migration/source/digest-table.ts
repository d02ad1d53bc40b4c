import { textOfParts } from '../../base/digest.js'
import { hash } from '../../base/supported-node.js'

/** Number of 32-bit words per digest. */
const DIGEST_WORDS = 4
const BYTES_OF_A_WORD = 4
/** Size of an entry: a digest and its number. */
const ENTRY_WORDS = DIGEST_WORDS + 1
/** Number of entries per array. A single array for all entries would be copied whenever it grows. */
const BLOCK_ENTRIES = 16_384
const FIRST_SLOTS = 1024
/** Maximum fraction of used slots. Above it, look-ups become slow. */
const MAX_LOAD = 0.75
const EMPTY = 0

/**
 * Maps texts to numbers. Takes about 30 bytes per text. It stores 128 bits of each text's SHA-256 instead of the text.
 * Uses open addressing. A slot contains the index of an entry plus 1; entries are in insertion order.
 */
export function createDigestTable() {
  const blocks: Int32Array[] = []
  let slots = new Uint32Array(FIRST_SLOTS)
  let size = 0
  /** Digest of the current text, reused. */
  const digest = new Int32Array(DIGEST_WORDS)

  const wordOf = (entry: number, word: number): number =>
    blocks[Math.floor(entry / BLOCK_ENTRIES)]?.[(entry % BLOCK_ENTRIES) * ENTRY_WORDS + word] ?? 0

  const isDigestOf = (entry: number): boolean =>
    digest.every((value, word) => wordOf(entry, word) === value)

  /** Writes the digest of the text to `digest`, and returns its slot or the empty slot for it. */
  function slotOf(text: string): number {
    writeDigest(text, digest)
    const mask = slots.length - 1
    let slot = (digest[0] ?? 0) & mask
    for (;;) {
      const content = slots[slot] ?? EMPTY
      if (content === EMPTY || isDigestOf(content - 1)) return slot
      slot = (slot + 1) & mask
    }
  }

  function append(number: number): void {
    if (size % BLOCK_ENTRIES === 0) blocks.push(new Int32Array(BLOCK_ENTRIES * ENTRY_WORDS))
    const start = (size % BLOCK_ENTRIES) * ENTRY_WORDS
    blocks.at(-1)?.set(digest, start)
    blocks.at(-1)?.fill(number, start + DIGEST_WORDS, start + ENTRY_WORDS)
    size += 1
  }

  function grow(): void {
    slots = new Uint32Array(2 * slots.length)
    const mask = slots.length - 1
    for (let entry = 0; entry < size; entry += 1) {
      let slot = wordOf(entry, 0) & mask
      while (slots[slot] !== EMPTY) slot = (slot + 1) & mask
      slots[slot] = entry + 1
    }
  }

  const numberIn = (slot: number): number | undefined => {
    const content = slots[slot] ?? EMPTY
    return content === EMPTY ? undefined : wordOf(content - 1, DIGEST_WORDS)
  }

  return {
    /** Stores a number of at most 31 bits. If the text has a number already, keeps and returns the earlier number. */
    add(text: string, number: number): number | undefined {
      const slot = slotOf(text)
      const earlier = numberIn(slot)
      if (earlier !== undefined) return earlier
      append(number)
      slots[slot] = size
      if (size > MAX_LOAD * slots.length) grow()
      return undefined
    },
    find: (text: string): number | undefined => numberIn(slotOf(text)),
  }
}

/**
 * Hashes a text with lone surrogates as UTF-16, because in UTF-8 all lone surrogates have the same bytes.
 * The digest is a binary string, because a Buffer per text would use memory outside the heap.
 */
function writeDigest(text: string, digest: Int32Array): void {
  const part = textOfParts([text])
  const bytes = part.isWellFormed() ? part : Buffer.from(part, 'utf16le')
  const characters = hash('sha256', bytes, 'binary')
  for (let word = 0; word < DIGEST_WORDS; word += 1) {
    const at = word * BYTES_OF_A_WORD
    digest[word] =
      characters.charCodeAt(at) |
      (characters.charCodeAt(at + 1) << 8) |
      (characters.charCodeAt(at + 2) << 16) |
      (characters.charCodeAt(at + 3) << 24)
  }
}
