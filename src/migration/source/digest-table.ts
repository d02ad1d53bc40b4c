import { textOfParts } from '../../base/digest.js'
import { hash } from '../../base/supported-node.js'

/** Number of 32-bit words per digest. */
const DIGEST_WORDS = 4
const BYTES_OF_A_WORD = 4
/** Size of an entry: a digest and its number. */
const ENTRY_WORDS = DIGEST_WORDS + 1
/** Number of entries per array. A single array for all entries would be copied whenever it grows. */
const ENTRIES = 16_384
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

  const wordOf = (place: number, word: number): number =>
    blocks[Math.floor(place / ENTRIES)]?.[(place % ENTRIES) * ENTRY_WORDS + word] ?? 0

  const isAt = (place: number): boolean =>
    digest.every((value, word) => wordOf(place, word) === value)

  /** Writes the digest of the text to `digest`, and returns its slot or the empty slot for it. */
  function slotOf(text: string): number {
    writeDigest(text, digest)
    const mask = slots.length - 1
    let slot = (digest[0] ?? 0) & mask
    for (;;) {
      const used = slots[slot] ?? EMPTY
      if (used === EMPTY || isAt(used - 1)) return slot
      slot = (slot + 1) & mask
    }
  }

  function keep(number: number): void {
    if (size % ENTRIES === 0) blocks.push(new Int32Array(ENTRIES * ENTRY_WORDS))
    const start = (size % ENTRIES) * ENTRY_WORDS
    blocks.at(-1)?.set(digest, start)
    blocks.at(-1)?.fill(number, start + DIGEST_WORDS, start + ENTRY_WORDS)
    size += 1
  }

  function grow(): void {
    slots = new Uint32Array(2 * slots.length)
    const mask = slots.length - 1
    for (let place = 0; place < size; place += 1) {
      let slot = wordOf(place, 0) & mask
      while (slots[slot] !== EMPTY) slot = (slot + 1) & mask
      slots[slot] = place + 1
    }
  }

  const numberIn = (slot: number): number | undefined => {
    const used = slots[slot] ?? EMPTY
    return used === EMPTY ? undefined : wordOf(used - 1, DIGEST_WORDS)
  }

  return {
    /** Stores a number of at most 31 bits. If the text has a number already, returns that one and keeps it. */
    add(text: string, number: number): number | undefined {
      const slot = slotOf(text)
      const earlier = numberIn(slot)
      if (earlier !== undefined) return earlier
      keep(number)
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
  const named = textOfParts([text])
  const bytes = named.isWellFormed() ? named : Buffer.from(named, 'utf16le')
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
