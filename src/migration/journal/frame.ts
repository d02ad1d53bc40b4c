import { hash } from 'node:crypto'

// The file's first line is HEADER. Each further line is what one `append` has written:
//
//   {"unit":"OCTETS-HEAD-BODY","lines":["…","…"]}
//
// OCTETS is the line's length with its line feed, BODY the digest of the array. HEAD is a digest of
// both and of the HEAD before it. So a line that was cut off is told from one that was changed, even in
// its length, and none can be missing, moved or doubled.

/** The journal's first line. */
export const HEADER = '{"journal":"express-service-auth/migration","version":1}\n'

export const VERSION = 1

const BEGIN = '{"unit":"'
const MIDDLE = '","lines":'
const END = '}\n'
/** Hexadecimal digits of each part. */
const OCTETS_DIGITS = 8
const HEAD_DIGITS = 16
const BODY_DIGITS = 32

/** Of all that comes before the array. */
export const HEAD_OCTETS: number =
  BEGIN.length + OCTETS_DIGITS + 1 + HEAD_DIGITS + 1 + BODY_DIGITS + MIDDLE.length

/** The first part of a unit. */
export interface UnitHead {
  /** Of the whole unit. */
  readonly octets: number
  /** What the next unit continues. */
  readonly check: string
  readonly bodyCheck: string
}

/** What the first unit continues. */
export const FIRST_CHECK: string = digest(HEADER, HEAD_DIGITS)

/** The array of a unit. */
export const bodyOf = (lines: readonly string[]): Buffer => Buffer.from(JSON.stringify(lines))

/** A unit that continues `previous`, and its own check. */
export function encodeUnit(previous: string, body: Buffer): { octets: Buffer; check: string } {
  const length = hexadecimal(HEAD_OCTETS + body.length + END.length)
  const bodyCheck = digest(body, BODY_DIGITS)
  const check = checkOf(previous, length, bodyCheck)
  const head = `${BEGIN}${length}-${check}-${bodyCheck}${MIDDLE}`
  return { octets: Buffer.concat([Buffer.from(head), body, Buffer.from(END)]), check }
}

/** Undefined when these octets are not the head of a unit that continues `previous`. */
export function decodeHead(previous: string, octets: Buffer): UnitHead | undefined {
  const text = octets.toString('latin1')
  const [length = '', check = '', bodyCheck = ''] = text
    .slice(BEGIN.length, HEAD_OCTETS - MIDDLE.length)
    .split('-')
  const expected = checkOf(previous, length, bodyCheck)
  if (text !== `${BEGIN}${length}-${expected}-${bodyCheck}${MIDDLE}`) return undefined
  return { octets: Number.parseInt(length, 16), check, bodyCheck }
}

/** The array of a whole unit; undefined when it was changed. */
export function decodeBody({ bodyCheck }: UnitHead, unit: Buffer): Buffer | undefined {
  const body = unit.subarray(HEAD_OCTETS, unit.length - END.length)
  if (unit.toString('latin1', unit.length - END.length) !== END) return undefined
  return digest(body, BODY_DIGITS) === bodyCheck ? body : undefined
}

const checkOf = (previous: string, length: string, bodyCheck: string): string =>
  digest(`${previous}-${length}-${bodyCheck}`, HEAD_DIGITS)

const hexadecimal = (octets: number): string => octets.toString(16).padStart(OCTETS_DIGITS, '0')

function digest(octets: string | Buffer, digits: number): string {
  return hash('sha256', octets, 'hex').slice(0, digits)
}
