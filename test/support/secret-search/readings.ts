import { LEAK_LENGTH } from './secret-index.js'

export type Form = 'as it is' | 'base64' | 'hex' | 'percent' | 'escaped' | 'a list of bytes'

/** A text, or what it becomes when it is decoded. */
export interface Reading {
  readonly form: Form
  readonly text: string
}

/** Two, because a secret may be encoded twice, such as a token in JSON in base64. */
const DEPTH = 2
/** Separates two decoded pieces; no secret contains it, because it is not a byte. */
const BETWEEN = '\u0100'

// The patterns match only runs that are long enough for `LEAK_LENGTH` bytes.
const BASE64 = new RegExp(`[A-Za-z0-9+/_-]{${Math.ceil((LEAK_LENGTH * 8) / 6)},}`, 'g')
const HEX = new RegExp(`[0-9a-f]{${LEAK_LENGTH * 2},}`, 'gi')
/** As `util.inspect` shows a `Buffer`. */
const SPACED_HEX = new RegExp(`(?:[0-9a-f]{2}[ :,]){${LEAK_LENGTH - 1},}[0-9a-f]{2}`, 'gi')
/** As `JSON.stringify` shows a `Buffer`. */
const BYTE_LIST = new RegExp(`(?:\\d{1,3},\\s*){${LEAK_LENGTH - 1},}\\d{1,3}`, 'g')

/** Four characters of base64 are three bytes, and a secret may begin at any of the four. */
const BASE64_ALIGNMENTS = [0, 1, 2, 3]
const HEX_ALIGNMENTS = [0, 1]

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

const DECODERS: readonly [Form, (text: string) => string][] = [
  ['base64', (text) => decodeRuns(text.match(BASE64), BASE64_ALIGNMENTS, 'base64')],
  ['hex', (text) => decodeRuns(text.match(HEX), HEX_ALIGNMENTS, 'hex')],
  [
    'hex',
    (text) =>
      decodeRuns(
        text.match(SPACED_HEX)?.map((run) => run.replace(/[ :,]/g, '')) ?? null,
        [0],
        'hex',
      ),
  ],
  ['a list of bytes', decodeLists],
  ['percent', (text) => text.replace(/%([0-9a-f]{2})/gi, (_, hex) => characterOf(hex))],
  ['escaped', decodeEscapes],
]

function decodeRuns(
  runs: readonly string[] | null,
  alignments: readonly number[],
  encoding: 'base64' | 'hex',
): string {
  const decoded = (runs ?? []).flatMap((run) =>
    alignments.map((skipped) => Buffer.from(run.slice(skipped), encoding).toString('latin1')),
  )
  return decoded.join(BETWEEN)
}

function decodeLists(text: string): string {
  const lists = text.match(BYTE_LIST) ?? []
  return lists
    .map((list) => Buffer.from(list.split(',').map(Number)).toString('latin1'))
    .join(BETWEEN)
}

/** Decodes the escapes of JSON and of string literals. */
function decodeEscapes(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(
    /\\(?:u00([0-9a-f]{2})|x([0-9a-f]{2})|([^ux]))/gi,
    (_, unicode, hex, other) => (other === undefined ? characterOf(unicode ?? hex) : other),
  )
}

const characterOf = (hex: string): string => String.fromCharCode(Number.parseInt(hex, 16))
