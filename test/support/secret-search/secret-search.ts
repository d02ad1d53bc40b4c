import { bytesOf, LEAK_LENGTH, readingsOf } from './readings.js'

/** Kinds of input that must not be in any output. */
export type SecretKind =
  | 'a token'
  | 'a signature'
  | 'an API key'
  | 'an idempotency key'
  | 'an encryption key'
  | 'a Redis password'
  | 'a password'

export interface SecretSearch {
  know(kind: SecretKind, value: string | Uint8Array): void
  /** Records a text that was written as a whole. */
  record(sink: string, text: string): void
  /** Records a piece of a stream. A secret may be split between two pieces. */
  recordPiece(sink: string, piece: string | Uint8Array): void
  /** Searches and forgets what was recorded. Returns all findings so far, without any part of a secret. */
  settle(): readonly string[]
}

/** Shorter secrets are ignored, because they would be found by chance. */
const SHORTEST_SECRET = 8
/** Fewer different characters, as in `aaaaaaaaaaaaaaaa`, are ignored for the same reason. */
const MIN_VARIETY = 4

/** A token that a child process makes and sends is unknown here, so it is recognised by its form. */
const TOKEN_FORM = /\beyJ[\w-]{16,}\.[\w-]{16,}/

/** More recorded output than this is searched and forgotten. */
const MAX_RECORDED = 256 * 1024
/** The end of a stream is searched again with what follows it. As long as a token. */
const OVERLAP = 8192
/** Of more characters of secrets than this, the older ones are forgotten, so that a flood of tokens fits in memory. */
const MAX_KNOWN = 4 * 1024 * 1024

export function createSecretSearch(
  currentTest: () => string | undefined = () => undefined,
): SecretSearch {
  const secrets = new Map<string, SecretKind>()
  let knownLength = 0
  /** The sinks of the texts. */
  const texts = new Map<string, string>()
  const streams = new Map<string, string>()
  let recordedLength = 0
  const findings = new Set<string>()

  function know(kind: SecretKind, value: string | Uint8Array): void {
    const secret = bytesOf(value)
    if (secret.length < SHORTEST_SECRET || secrets.has(secret)) return
    secrets.set(secret, kind)
    knownLength += secret.length
    if (knownLength > MAX_KNOWN) forgetOlder()
  }

  function forgetOlder(): void {
    searchAll()
    for (const secret of secrets.keys()) {
      if (knownLength <= MAX_KNOWN / 2) return
      secrets.delete(secret)
      knownLength -= secret.length
    }
  }

  function count(length: number): void {
    recordedLength += length
    if (recordedLength > MAX_RECORDED) searchAll()
  }

  function searchAll(): void {
    const output = indexOutput([
      ...texts,
      ...Array.from(streams, ([sink, text]) => [text, sink] as const),
    ])
    for (const [secret, kind] of secrets) {
      const place = placeOf(secret, output)
      if (place !== undefined) findings.add(`${place} holds ${kind} or a part of it`)
    }
    for (const { place, text } of output.readings) {
      if (TOKEN_FORM.test(text)) findings.add(`${place} holds text in the form of a token`)
    }
    texts.clear()
    for (const [sink, text] of streams) streams.set(sink, text.slice(-OVERLAP))
    recordedLength = 0
  }

  return {
    know,
    record(sink, text) {
      const test = currentTest()
      // Many errors and events come repeatedly.
      if (texts.has(text)) return
      texts.set(text, test === undefined ? sink : `while «${test}» ran, ${sink}`)
      count(text.length)
    },
    // Without a test, because a piece may begin in one test and end in the next.
    recordPiece(sink, piece) {
      const text = bytesOf(piece)
      streams.set(sink, (streams.get(sink) ?? '') + text)
      count(text.length)
    },
    settle() {
      searchAll()
      streams.clear()
      return [...findings]
    },
  }
}

interface Output {
  readonly readings: readonly { readonly place: string; readonly text: string }[]
  /** Where each run of `LEAK_LENGTH` characters is. */
  readonly places: ReadonlyMap<string, string>
}

/** Indexes the output instead of the secrets, because it is the shorter of the two by far. */
function indexOutput(texts: readonly (readonly [text: string, sink: string])[]): Output {
  const places = new Map<string, string>()
  const readings = texts.flatMap(([text, sink]) =>
    [...readingsOf(text)].map((reading) => ({ place: `${sink} (${reading.form})`, ...reading })),
  )
  for (const { place, text } of readings) {
    for (let at = 0; at + LEAK_LENGTH <= text.length; at++) {
      places.set(text.slice(at, at + LEAK_LENGTH), place)
    }
  }
  return { readings, places }
}

/** Returns the place of the secret, or of a part of it. */
function placeOf(secret: string, { readings, places }: Output): string | undefined {
  if (secret.length < LEAK_LENGTH) {
    const holds = ({ text }: { readonly text: string }): boolean => text.includes(secret)
    return isVaried(secret) ? readings.find(holds)?.place : undefined
  }
  for (let at = 0; at + LEAK_LENGTH <= secret.length; at++) {
    const part = secret.slice(at, at + LEAK_LENGTH)
    const place = places.get(part)
    if (place !== undefined && isVaried(part)) return place
  }
  return undefined
}

const isVaried = (text: string): boolean => new Set(text).size >= MIN_VARIETY
