import { hash } from 'node:crypto'

// The file's first line is HEADER. Each further line is what one `append` has written:
//
//   {"unit":"BYTES-HEAD-BODY","lines":["…","…"]}
//
// BYTES is the line's length with its line feed, BODY the digest of the array. HEAD is a digest of
// both and of the HEAD before it. So a line that was cut off is told from one that was changed, even in
// its length, and none can be missing, moved or doubled.

/** The journal's first line. */
export const HEADER = '{"journal":"express-service-auth/migration","version":1}\n'

export const VERSION = 1

const BEGIN = '{"unit":"'
const MIDDLE = '","lines":'
const END = '}\n'
/** Hexadecimal digits of each part. */
const BYTES_DIGITS = 8
const HEAD_DIGITS = 16
const BODY_DIGITS = 32

/** Of all that comes before the array. */
export const HEAD_BYTES: number =
  BEGIN.length + BYTES_DIGITS + 1 + HEAD_DIGITS + 1 + BODY_DIGITS + MIDDLE.length

/** The first part of a unit. */
export interface UnitHead {
  /** Of the whole unit. */
  readonly bytes: number
  /** What the next unit continues. */
  readonly check: string
  readonly bodyCheck: string
}

/** What the first unit continues. */
export const FIRST_CHECK: string = digest(HEADER, HEAD_DIGITS)

/** The array of a unit. */
export const bodyOf = (lines: readonly string[]): Buffer => Buffer.from(JSON.stringify(lines))

/** A unit that continues `previous`, and its own check. */
export function encodeUnit(previous: string, body: Buffer): { bytes: Buffer; check: string } {
  const length = hexadecimal(HEAD_BYTES + body.length + END.length)
  const bodyCheck = digest(body, BODY_DIGITS)
  const check = checkOf(previous, length, bodyCheck)
  const head = `${BEGIN}${length}-${check}-${bodyCheck}${MIDDLE}`
  return { bytes: Buffer.concat([Buffer.from(head), body, Buffer.from(END)]), check }
}

/** Undefined when these bytes are not the head of a unit that continues `previous`. */
export function decodeHead(previous: string, bytes: Buffer): UnitHead | undefined {
  const text = bytes.toString('latin1')
  const [length = '', check = '', bodyCheck = ''] = text
    .slice(BEGIN.length, HEAD_BYTES - MIDDLE.length)
    .split('-')
  const expected = checkOf(previous, length, bodyCheck)
  if (text !== `${BEGIN}${length}-${expected}-${bodyCheck}${MIDDLE}`) return undefined
  return { bytes: Number.parseInt(length, 16), check, bodyCheck }
}

/** The array of a whole unit; undefined when it was changed. */
export function decodeBody({ bodyCheck }: UnitHead, unit: Buffer): Buffer | undefined {
  const body = unit.subarray(HEAD_BYTES, unit.length - END.length)
  if (unit.toString('latin1', unit.length - END.length) !== END) return undefined
  return digest(body, BODY_DIGITS) === bodyCheck ? body : undefined
}

const checkOf = (previous: string, length: string, bodyCheck: string): string =>
  digest(`${previous}-${length}-${bodyCheck}`, HEAD_DIGITS)

const hexadecimal = (bytes: number): string => bytes.toString(16).padStart(BYTES_DIGITS, '0')

function digest(bytes: string | Buffer, digits: number): string {
  return hash('sha256', bytes, 'hex').slice(0, digits)
}
