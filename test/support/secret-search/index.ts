// The search for secrets runs with every test file (`setup.ts`) and fails the file if a secret is in its output.
// It knows as secrets what is sent in `Authorization`, `Idempotency-Key` and `api-key`, and what `startRedis`
// and the shared issuer get or make. It sees as output the channels, `console`, stdout and stderr, and errors that a
// test asserts on or passes to `next(error)`. A test adds other secrets by `knowSecret`, and other output, such
// as that of a logger, an exporter or a command, by `recordOutput`. Outside the test suite, these functions do nothing.
// A file that tests channels without subscribers calls `leaveChannels` at its top.

/** So many characters at the beginning or the end of a secret are a leak; of a shorter secret, all of them. */
export const LEAK_LENGTH = 16
/** Shorter secrets are ignored, because they would be found by chance. */
const SHORTEST_SECRET = 8
/** Fewer different characters, as in `aaaaaaaaaaaaaaaa`, are ignored for the same reason. */
const MIN_VARIETY = 4
/** A token that a child process makes and sends is unknown here, so it is recognised by its form. */
const TOKEN_FORM = /\beyJ[\w-]{16,}\.[\w-]{16,}/
/** More recorded output than this is searched and forgotten. */
const MAX_RECORDED = 256 * 1024

interface SecretSearch {
  readonly currentTest: () => string | undefined
  /** The kinds of the secrets, by the characters that are a leak. */
  readonly leaks: Map<string, string>
  /** The recorded texts, each with the place where it came out. */
  readonly texts: Map<string, string>
  recordedLength: number
  readonly findings: Set<string>
  leaveChannels: () => void
}

const SEARCH: unique symbol = Symbol.for('express-service-auth tests, search for secrets')

// One for the process, although each test file loads this module again: what watches the process is installed once,
// and tells the search of the file that runs.
const holder = globalThis as { [SEARCH]?: SecretSearch | undefined }

export const currentSearch = (): SecretSearch | undefined => holder[SEARCH]

export function continueSearch(search: SecretSearch | undefined): void {
  holder[SEARCH] = search
}

/** From now on, what is known and recorded belongs to this search. */
export function beginSearch(currentTest: SecretSearch['currentTest'] = () => undefined) {
  const search: SecretSearch = {
    currentTest,
    leaks: new Map(),
    texts: new Map(),
    recordedLength: 0,
    findings: new Set(),
    leaveChannels() {},
  }
  continueSearch(search)
  return search
}

/** `kind` tells what has come out, such as `an API key`. */
export function knowSecret(kind: string, value: string | Uint8Array): void {
  for (const secret of formsOf(value)) {
    for (const leak of [secret.slice(0, LEAK_LENGTH), secret.slice(-LEAK_LENGTH)]) {
      if (leak.length < SHORTEST_SECRET || new Set(leak).size < MIN_VARIETY) continue
      currentSearch()?.leaks.set(leak, kind)
    }
  }
}

/** A text as it is, and bytes as programs write them. */
function formsOf(value: string | Uint8Array): readonly string[] {
  if (typeof value === 'string') return [value]
  const bytes = Buffer.from(value)
  return (['latin1', 'base64', 'base64url', 'hex'] as const).map((form) => bytes.toString(form))
}

/** Each part of a token is a secret. Ignores short texts, such as `constructor` in a malformed token. */
export function knowToken(token: string): void {
  for (const part of token.split('.')) if (part.length >= LEAK_LENGTH) knowSecret('a token', part)
}

/** Tells the search an output: all texts in the value. */
export function recordOutput(sink: string, value: unknown): void {
  const search = currentSearch()
  if (search === undefined) return
  const test = search.currentTest()
  const place = test === undefined ? sink : `while «${test}» ran, ${sink}`
  for (const text of textsIn(value)) {
    // Many errors and events come repeatedly.
    if (search.texts.has(text)) continue
    search.texts.set(text, place)
    search.recordedLength += text.length
  }
  if (search.recordedLength > MAX_RECORDED) findLeaks(search)
}

/** Searches and forgets what was recorded. Returns all findings so far, without any part of a secret. */
export function findLeaks(search: SecretSearch): readonly string[] {
  const { leaks, texts, findings } = search
  const short = [...leaks].filter(([leak]) => leak.length < LEAK_LENGTH)
  for (const [text, place] of texts) {
    if (TOKEN_FORM.test(text)) findings.add(`${place} holds text in the form of a token`)
    const found = short.filter(([leak]) => text.includes(leak)).map(([, kind]) => kind)
    for (let at = 0; at + LEAK_LENGTH <= text.length; at++) {
      const kind = leaks.get(text.slice(at, at + LEAK_LENGTH))
      if (kind !== undefined) found.push(kind)
    }
    for (const kind of found) findings.add(`${place} holds ${kind} or a part of it`)
  }
  texts.clear()
  search.recordedLength = 0
  return [...findings]
}

/** Limits the search, because a value may refer to a whole client. */
const MAX_VALUES = 20_000
/** Members of errors that are read even if they are inherited or accessors. */
const ERROR_MEMBERS = ['name', 'message', 'cause', 'errors'] as const
/** Stack frames are left out, because they would be most of the text to search. */
const STACK_FRAME = /\n {4}at .*/g

/**
 * Returns all texts in a value, each by itself, because most of them come repeatedly: names and values of its members,
 * enumerable or not, symbols, and the content of maps, sets, bytes and errors with their causes. Calls no accessors,
 * except those of `ERROR_MEMBERS`.
 */
function textsIn(value: unknown): readonly string[] {
  const texts: string[] = []
  const seen = new Set<object>()
  const values = [value]
  while (values.length > 0 && seen.size < MAX_VALUES) {
    const one = values.pop()
    if (typeof one === 'string' || typeof one === 'symbol') texts.push(String(one))
    else if (one instanceof Uint8Array) texts.push(Buffer.from(one).toString('latin1'))
    else if (typeof one === 'object' && one !== null && !seen.has(one)) {
      seen.add(one)
      values.push(...contentOf(one))
    }
  }
  return texts
}

function contentOf(value: object): unknown[] {
  if (Array.isArray(value)) return value
  const names = Reflect.ownKeys(value)
  const members = names
    .filter((name) => !(value instanceof Error && name === 'stack'))
    .map((name) => Object.getOwnPropertyDescriptor(value, name)?.value as unknown)
  const content = [...names, ...members]
  if (value instanceof Map || value instanceof Set) content.push(...value)
  if (value instanceof Error) {
    content.push(...ERROR_MEMBERS.map((name) => (value as Error & { errors?: unknown })[name]))
    content.push(String(value.stack).replace(STACK_FRAME, ''))
  }
  return content
}

/** No longer records the events of the channels. */
export const leaveChannels = (): void => currentSearch()?.leaveChannels()
