import { hash } from 'node:crypto'
import { textOfParts } from '../../base/digest.js'

/** Texts in the order in which they were added; keeps 128 bits of each one's SHA-256, and no text. */
export interface DigestTable {
  readonly size: number
  /** Its number, from 0; undefined when it was there already. */
  add(text: string): number | undefined
  /** The number that it was given. */
  find(text: string): number | undefined
}

/** 32-bit words of a digest. */
const WORDS = 4
const OCTETS_OF_A_WORD = 4
/** Digests in an array; one array for all would be copied whenever it grows. */
const DIGESTS = 16_384
const FIRST_SLOTS = 1024
/** Of the slots in use; beyond it look-ups become long. */
const MAX_LOAD = 0.75
const EMPTY = 0

/** Open addressing: a slot holds a text's number and 1, and the digests lie in the texts' order. */
export function createDigestTable(): DigestTable {
  const digests: Int32Array[] = []
  let slots = new Uint32Array(FIRST_SLOTS)
  let size = 0
  /** Of the text that is looked at. */
  const digest = new Int32Array(WORDS)

  /** Leaves its digest in `digest`; its slot, or the empty one that it would get. */
  function slotOf(text: string): number {
    writeDigest(text, digest)
    const mask = slots.length - 1
    let slot = (digest[0] ?? 0) & mask
    for (;;) {
      const entry = slots[slot] ?? EMPTY
      if (entry === EMPTY || isDigest(entry - 1)) return slot
      slot = (slot + 1) & mask
    }
  }

  function isDigest(number: number): boolean {
    const block = digests[Math.floor(number / DIGESTS)]
    const start = (number % DIGESTS) * WORDS
    for (let word = 0; word < WORDS; word += 1) {
      if (block?.[start + word] !== digest[word]) return false
    }
    return true
  }

  function keep(): void {
    if (size % DIGESTS === 0) digests.push(new Int32Array(DIGESTS * WORDS))
    digests.at(-1)?.set(digest, (size % DIGESTS) * WORDS)
  }

  function grow(): void {
    slots = new Uint32Array(2 * slots.length)
    const mask = slots.length - 1
    for (let number = 0; number < size; number += 1) {
      const block = digests[Math.floor(number / DIGESTS)]
      let slot = (block?.[(number % DIGESTS) * WORDS] ?? 0) & mask
      while (slots[slot] !== EMPTY) slot = (slot + 1) & mask
      slots[slot] = number + 1
    }
  }

  return {
    get size() {
      return size
    },
    add(text) {
      const slot = slotOf(text)
      if (slots[slot] !== EMPTY) return undefined
      keep()
      size += 1
      slots[slot] = size
      if (size > MAX_LOAD * slots.length) grow()
      return size - 1
    },
    find(text) {
      const entry = slots[slotOf(text)] ?? EMPTY
      return entry === EMPTY ? undefined : entry - 1
    },
  }
}

/**
 * In UTF-8 all lone surrogates are the same octets, so a text that has some is digested as UTF-16. The
 * digest comes as a string, a character an octet: a Buffer each time would be memory outside the heap.
 */
function writeDigest(text: string, digest: Int32Array): void {
  const named = textOfParts([text])
  const octets = named.isWellFormed() ? named : Buffer.from(named, 'utf16le')
  const characters = hash('sha256', octets, 'binary')
  for (let word = 0; word < WORDS; word += 1) {
    const at = word * OCTETS_OF_A_WORD
    digest[word] =
      characters.charCodeAt(at) |
      (characters.charCodeAt(at + 1) << 8) |
      (characters.charCodeAt(at + 2) << 16) |
      (characters.charCodeAt(at + 3) << 24)
  }
}
