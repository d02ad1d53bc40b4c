/** So many successive characters of a secret are a leak; of a shorter secret, all of its characters. */
export const LEAK_LENGTH = 16

type Form = 'as it is' | 'base64' | 'hex' | 'percent' | 'escaped' | 'a list of bytes'

/** A text, or what it becomes when it is decoded. */
export interface Reading {
  readonly form: Form
  readonly text: string
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: it names all of ASCII
const ASCII = /^[\x00-\x7f]*$/

/** Returns a string with one character for each byte, so that text and bytes are searched alike. */
export function bytesOf(value: string | Uint8Array): string {
  if (typeof value === 'string' && ASCII.test(value)) return value
  return Buffer.from(value as string).toString('latin1')
}

/** Two, because a secret may be encoded twice, such as a token in JSON in base64. */
const DEPTH = 2

/**
 * Returns the text as it is, and decoded in each way. The output is decoded, instead of the secrets encoded, so that
 * parts of a secret and mixed forms are found wherever they begin.
 */
export function* readingsOf(text: string, depth = DEPTH): Generator<Reading> {
  yield { form: 'as it is', text }
  if (depth === 0) return
  for (const [form, decode] of DECODERS) {
    const decoded = decode(text)
    if (decoded === '' || decoded === text) continue
    for (const inner of readingsOf(decoded, depth - 1)) yield { form, text: inner.text }
  }
}

// The patterns match only runs that are long enough for `LEAK_LENGTH` bytes.
const BASE64 = new RegExp(`[A-Za-z0-9+/_-]{${Math.ceil((LEAK_LENGTH * 8) / 6)},}`, 'g')
/** Also with separators, as `util.inspect` shows a `Buffer`. */
const HEX = new RegExp(`(?:[0-9a-f][ :,]?){${LEAK_LENGTH * 2},}`, 'gi')
/** As `JSON.stringify` shows a `Buffer`. */
const BYTE_LIST = new RegExp(`(?:\\d{1,3},\\s*){${LEAK_LENGTH - 1},}\\d{1,3}`, 'g')

const DECODERS: readonly [Form, (text: string) => string][] = [
  // Four characters of base64 are three bytes, and a secret may begin at any of the four.
  ['base64', (text) => decodeRuns(text, BASE64, (run) => fromEach([0, 1, 2, 3], run, 'base64'))],
  ['hex', (text) => decodeRuns(text, HEX, (run) => fromEach([0, 1], digitsOf(run), 'hex'))],
  [
    'a list of bytes',
    (text) => decodeRuns(text, BYTE_LIST, (run) => [Buffer.from(run.split(',').map(Number))]),
  ],
  ['percent', decodePercent],
  ['escaped', decodeEscapes],
]

const decodeRuns = (text: string, runs: RegExp, decode: (run: string) => Buffer[]): string =>
  (text.match(runs) ?? [])
    .flatMap((run) => decode(run).map((bytes) => bytes.toString('latin1')))
    .join('\n')

const fromEach = (starts: readonly number[], run: string, encoding: BufferEncoding): Buffer[] =>
  starts.map((start) => Buffer.from(run.slice(start), encoding))

const digitsOf = (run: string): string => run.replace(/[ :,]/g, '')

export function decodePercent(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex) => characterOf(hex))
}

/** Decodes the escapes of JSON and of string literals. */
function decodeEscapes(text: string): string {
  return text.replace(
    /\\(?:u00([0-9a-f]{2})|x([0-9a-f]{2})|([^ux]))/gi,
    (_, unicode, hex, other) => other ?? characterOf(unicode ?? hex),
  )
}

const characterOf = (hex: string): string => String.fromCharCode(Number.parseInt(hex, 16))
