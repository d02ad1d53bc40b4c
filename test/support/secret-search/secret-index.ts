/** Kinds of input that must not be in any output. */
export type SecretKind =
  | 'a token'
  | 'a signature'
  | 'an API key'
  | 'an idempotency key'
  | 'an encryption key'
  | 'a Redis password'
  | 'a password'

export interface SecretIndex {
  /** Returns the kind of a secret of which the text contains a part. `text` is as `bytesOf` returns it. */
  find(text: string): SecretKind | undefined
}

/** So many successive characters of a secret are a leak; of a shorter secret, all of its characters. */
export const LEAK_LENGTH = 16
/** Shorter secrets are ignored, because they would be found by chance. */
export const SHORTEST_SECRET = 8
/** Fewer different characters, as in `aaaaaaaaaaaaaaaa`, are ignored for the same reason. */
const MIN_VARIETY = 4

/** Half of `LEAK_LENGTH`, so that any leak contains a whole block of the secret, wherever it begins. */
const BLOCK = 8
const MULTIPLIER = 31
/** What the first character of a block adds to the block's hash. */
const FIRST_WEIGHT = Array.from({ length: BLOCK - 1 }).reduce<number>(
  (weight) => Math.imul(weight, MULTIPLIER),
  1,
)
/** Separates two secrets; not a byte, so it is in no secret. */
const BETWEEN = '\u0100'

export function indexSecrets(secrets: ReadonlyMap<string, SecretKind>): SecretIndex {
  const kinds = [...secrets.values()]
  const starts: number[] = []
  let length = BETWEEN.length
  for (const secret of secrets.keys()) {
    starts.push(length)
    length += secret.length + BETWEEN.length
  }
  const all = `${BETWEEN}${[...secrets.keys()].join(BETWEEN)}${BETWEEN}`
  const blocks = indexBlocks(all, starts)

  /** Whether enough characters agree around `at` in the text and `place` in the secrets. */
  function isLeak(text: string, at: number, place: number): boolean {
    let first = place
    while (all[first - 1] === text[at - (place - first) - 1]) first -= 1
    let end = place
    while (end < length && all[end] === text[at + (end - place)]) end += 1
    const isWhole = all[first - 1] === BETWEEN && all[end] === BETWEEN
    if (end - first < BLOCK || (end - first < LEAK_LENGTH && !isWhole)) return false
    return new Set(all.slice(first, end)).size >= MIN_VARIETY
  }

  return {
    find(text) {
      if (secrets.size === 0 || text.length < BLOCK) return undefined
      let hash = hashAt(text, 0)
      for (let at = 0; ; at++) {
        for (let block = blocks.first(hash); block !== NONE; block = blocks.next(block)) {
          const place = blocks.placeOf(block)
          if (isLeak(text, at, place)) return kinds[lastBefore(starts, place)]
        }
        if (at + BLOCK >= text.length) return undefined
        const rest = hash - Math.imul(text.charCodeAt(at), FIRST_WEIGHT)
        hash = (Math.imul(rest, MULTIPLIER) + text.charCodeAt(at + BLOCK)) | 0
      }
    },
  }
}

interface Blocks {
  /** Returns a block with this hash, or `NONE`. */
  first(hash: number): number
  /** Returns another block with the hash of `block`, or `NONE`. */
  next(block: number): number
  placeOf(block: number): number
}

const NONE = -1

/** Makes a hash table in typed arrays, for speed: a search looks up a block at each character of the output. */
function indexBlocks(all: string, starts: readonly number[]): Blocks {
  const capacity = Math.ceil(all.length / BLOCK)
  const mask = 2 ** Math.ceil(Math.log2(capacity * 4)) - 1
  const heads = new Int32Array(mask + 1).fill(NONE)
  const nexts = new Int32Array(capacity)
  const hashes = new Int32Array(capacity)
  const places = new Int32Array(capacity)
  let count = 0
  starts.forEach((start, index) => {
    const end = (starts[index + 1] ?? all.length) - BETWEEN.length
    for (let place = start; place + BLOCK <= end; place += BLOCK) {
      const hash = hashAt(all, place)
      hashes[count] = hash
      places[count] = place
      nexts[count] = heads[slotOf(hash)] as number
      heads[slotOf(hash)] = count
      count += 1
    }
  })

  function slotOf(hash: number): number {
    return (hash ^ (hash >>> 15)) & mask
  }

  function ofHash(from: number, hash: number): number {
    let block = from
    while (block !== NONE && hashes[block] !== hash) block = nexts[block] as number
    return block
  }

  return {
    first: (hash) => ofHash(heads[slotOf(hash)] as number, hash),
    next: (block) => ofHash(nexts[block] as number, hashes[block] as number),
    placeOf: (block) => places[block] as number,
  }
}

function hashAt(text: string, at: number): number {
  let hash = 0
  for (let index = at; index < at + BLOCK; index++) {
    hash = (Math.imul(hash, MULTIPLIER) + text.charCodeAt(index)) | 0
  }
  return hash
}

/** Returns the index of the last of the ascending numbers that is not above `limit`. */
function lastBefore(ascending: readonly number[], limit: number): number {
  let low = 0
  let high = ascending.length
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((ascending[middle] as number) <= limit) low = middle
    else high = middle
  }
  return low
}
