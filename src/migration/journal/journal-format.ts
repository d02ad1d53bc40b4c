import { hash } from '../../base/supported-node.js'
import { MigrationError } from '../run/migration-error.js'

// The first line of the file is HEADER. Each further line is one `append`:
//
//   {"unit":"BYTES-HEAD-BODY","lines":["…","…"]}
//
// BYTES is the length of the line with its line feed, BODY the digest of the array. HEAD is a digest of
// BYTES, BODY and the previous HEAD. So an incomplete line can be distinguished from a changed line, even if
// BYTES was changed, and a missing, moved or repeated line is detected.

export const HEADER = '{"journal":"express-service-auth/migration","version":1}\n'

const VERSION = 1

const BEGIN = '{"unit":"'
const MIDDLE = '","lines":'
const END = '}\n'
/** Number of hexadecimal digits of each part. */
const BYTES_DIGITS = 8
const HEAD_DIGITS = 16
const BODY_DIGITS = 32

/** Length of everything before the array. */
export const HEAD_BYTES: number =
  BEGIN.length + BYTES_DIGITS + 1 + HEAD_DIGITS + 1 + BODY_DIGITS + MIDDLE.length

/** The part of a unit before its array. */
interface UnitHead {
  /** Length of the whole unit. */
  readonly bytes: number
  /** The HEAD of this unit, which the HEAD of the next unit covers. */
  readonly check: string
  readonly bodyCheck: string
}

/** Stands in for the previous HEAD in the first unit. */
const FIRST_CHECK: string = digest(HEADER, HEAD_DIGITS)

/** Returns a unit that follows the HEAD `previous`, and the HEAD of this unit as `check`. */
export function encodeUnit(
  previous: string,
  lines: readonly string[],
): { bytes: Buffer; check: string } {
  const body = Buffer.from(JSON.stringify(lines))
  const length = hexadecimal(HEAD_BYTES + body.length + END.length)
  const bodyCheck = digest(body, BODY_DIGITS)
  const check = checkOf(previous, length, bodyCheck)
  const head = `${BEGIN}${length}-${check}-${bodyCheck}${MIDDLE}`
  return { bytes: Buffer.concat([Buffer.from(head), body, Buffer.from(END)]), check }
}

/** Returns `undefined` if the bytes are not the head of a unit that follows the HEAD `previous`. */
export function decodeHead(previous: string, bytes: Buffer): UnitHead | undefined {
  const text = bytes.toString('latin1')
  const [length = '', check = '', bodyCheck = ''] = text
    .slice(BEGIN.length, HEAD_BYTES - MIDDLE.length)
    .split('-')
  const expected = checkOf(previous, length, bodyCheck)
  if (text !== `${BEGIN}${length}-${expected}-${bodyCheck}${MIDDLE}`) return undefined
  return { bytes: Number.parseInt(length, 16), check, bodyCheck }
}

/** Returns the array of a complete unit; `undefined` if it was changed. */
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

/** One `append` of the file. */
export interface Unit {
  /** Its array as JSON. Valid until the next unit is read. */
  readonly body: Buffer
  /** Offset of its end in the file. */
  readonly end: number
  readonly check: string
  readonly line: number
}

/** Returns the lines of one `append`. */
export const parseUnit = ({ body }: Unit): string[] => JSON.parse(body.toString())

/** The position before the first unit. */
export const NO_UNIT: Omit<Unit, 'body'> = { end: HEADER.length, check: FIRST_CHECK, line: 1 }

/** @throws MigrationError `bad_journal` if the file does not begin with `HEADER`. */
export function checkHeader(bytes: Buffer): void {
  const text = bytes.toString('latin1')
  if (text === HEADER) return
  const version = /^\{"journal":"express-service-auth\/migration","version":(\d+)[,}]/.exec(
    text,
  )?.[1]
  if (version !== undefined && Number(version) > VERSION) {
    throw new MigrationError('bad_journal', 'the journal is of a newer version of this package', 1)
  }
  throw new MigrationError(
    'bad_journal',
    'this is not the journal of a migration, or it is damaged',
    1,
  )
}

export const damaged = (line: number): MigrationError =>
  new MigrationError('bad_journal', 'the journal is damaged', line)
