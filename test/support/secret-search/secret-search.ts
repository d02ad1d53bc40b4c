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
  record(sink: string, text: string): void
  /** Searches and forgets what was recorded. Returns all findings so far, without any part of a secret. */
  settle(): readonly string[]
}

/** So many successive characters of a secret are a leak; of a shorter secret, all of its characters. */
export const LEAK_LENGTH = 16
/** Shorter secrets are ignored, because they would be found by chance. */
const SHORTEST_SECRET = 8
/** Fewer different characters, as in `aaaaaaaaaaaaaaaa`, are ignored for the same reason. */
const MIN_VARIETY = 4

/** A token that a child process makes and sends is unknown here, so it is recognised by its form. */
const TOKEN_FORM = /\beyJ[\w-]{16,}\.[\w-]{16,}/

/** More recorded output than this is searched and forgotten. */
const MAX_RECORDED = 256 * 1024
/** Of more characters of secrets than this, the older ones are forgotten, so that a flood of tokens fits in memory. */
const MAX_KNOWN = 4 * 1024 * 1024

export function createSecretSearch(
  currentTest: () => string | undefined = () => undefined,
): SecretSearch {
  const secrets = new Map<string, SecretKind>()
  let knownLength = 0
  /** The places of the texts. */
  const texts = new Map<string, string>()
  let recordedLength = 0
  const findings = new Set<string>()

  function searchAll(): void {
    const places = placesOfRuns(texts)
    for (const [secret, kind] of secrets) {
      const place = placeOf(secret, texts, places)
      if (place !== undefined) findings.add(`${place} holds ${kind} or a part of it`)
    }
    for (const [text, place] of texts) {
      if (TOKEN_FORM.test(text)) findings.add(`${place} holds text in the form of a token`)
    }
    texts.clear()
    recordedLength = 0
  }

  function forgetOlder(): void {
    searchAll()
    for (const secret of secrets.keys()) {
      if (knownLength <= MAX_KNOWN / 2) return
      secrets.delete(secret)
      knownLength -= secret.length
    }
  }

  return {
    know(kind, value) {
      for (const secret of formsOf(value)) {
        if (secret.length < SHORTEST_SECRET || secrets.has(secret)) continue
        secrets.set(secret, kind)
        knownLength += secret.length
      }
      if (knownLength > MAX_KNOWN) forgetOlder()
    },
    record(sink, text) {
      // Many errors and events come repeatedly.
      if (texts.has(text)) return
      const test = currentTest()
      texts.set(text, test === undefined ? sink : `while «${test}» ran, ${sink}`)
      recordedLength += text.length
      if (recordedLength > MAX_RECORDED) searchAll()
    },
    settle() {
      searchAll()
      return [...findings]
    },
  }
}

/** Returns a text as it is, and bytes as programs write them. */
function formsOf(value: string | Uint8Array): readonly string[] {
  if (typeof value === 'string') return [value]
  const bytes = Buffer.from(value)
  return (['latin1', 'base64', 'base64url', 'hex'] as const).map((form) => bytes.toString(form))
}

/** Indexes the output instead of the secrets, because it is the shorter of the two by far. */
function placesOfRuns(texts: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const places = new Map<string, string>()
  for (const [text, place] of texts) {
    for (let at = 0; at + LEAK_LENGTH <= text.length; at++) {
      places.set(text.slice(at, at + LEAK_LENGTH), place)
    }
  }
  return places
}

/** Returns the place of the secret, or of a part of it. */
function placeOf(
  secret: string,
  texts: ReadonlyMap<string, string>,
  places: ReadonlyMap<string, string>,
): string | undefined {
  if (secret.length < LEAK_LENGTH) {
    if (!isVaried(secret)) return undefined
    return [...texts].find(([text]) => text.includes(secret))?.[1]
  }
  for (let at = 0; at + LEAK_LENGTH <= secret.length; at++) {
    const part = secret.slice(at, at + LEAK_LENGTH)
    const place = places.get(part)
    if (place !== undefined && isVaried(part)) return place
  }
  return undefined
}

const isVaried = (text: string): boolean => new Set(text).size >= MIN_VARIETY
