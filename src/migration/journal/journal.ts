import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { MigrationError } from '../run/migration-error.js'
import { type FileLine, readLines } from '../source/read-lines.js'

/** The write-ahead log of a run. It contains neither secrets nor account data. */
export interface Journal {
  /** Yields all lines in the order of their appends. */
  read(): AsyncIterable<string>
  /** Appends all lines or none. Resolves once they survive a crash of the machine. */
  append(lines: readonly string[]): Promise<void>
  /** Closes the journal, so that another run can open it. */
  close(): Promise<void>
}

// The first line of the file is HEADER. Each further line is one `append`:
//
//   {"check":"…","lines":["…","…"]}
//
// `check` is a digest of the array and the previous `check`, so a line that is changed, missing, moved or
// repeated is detected. A last line without its line feed is an append that a crash left incomplete.

const VERSION = 2
const START = '{"journal":"express-service-auth/migration","version":'
export const HEADER: string = `${START}${VERSION}}\n`
const CHECK_DIGITS = 32
const BEFORE_LINES = '{"check":"","lines":'.length + CHECK_DIGITS

/** The end of a line of the file. */
export interface Position {
  /** Offset in the file. */
  readonly end: number
  /** What the next line's digest continues. */
  readonly check: string
  readonly lineNumber: number
}

export const AFTER_HEADER: Position = {
  end: HEADER.length,
  check: checkOf('', HEADER),
  lineNumber: 1,
}

/** Returns the bytes of an `append`, a JSON array that follows the digest `previous`, and its own digest. */
export function encode(
  previous: string,
  array: string | Buffer,
): { readonly bytes: Buffer; readonly check: string } {
  const check = checkOf(previous, array)
  const parts = [`{"check":"${check}","lines":`, array, '}\n']
  return { check, bytes: Buffer.concat(parts.map((part) => Buffer.from(part))) }
}

function checkOf(previous: string, bytes: string | Buffer): string {
  const digest = createHash('sha256').update(previous).update(bytes).digest('hex')
  return digest.slice(0, CHECK_DIGITS)
}

/** An `append`, and its position in the file. */
export interface Append extends Position {
  readonly lines: readonly string[]
}

/** Returns `undefined` unless the line is exactly an `append` that follows `previous`. */
function decode(previous: Position, line: Buffer): Append | undefined {
  const array = line.subarray(BEFORE_LINES, -1)
  const { bytes, check } = encode(previous.check, array)
  if (!bytes.subarray(0, -1).equals(line)) return undefined
  return {
    end: previous.end + bytes.length,
    check,
    lineNumber: previous.lineNumber + 1,
    lines: JSON.parse(array.toString()),
  }
}

/**
 * Yields the appends in the first `size` bytes of a journal. Leaves out an incomplete last one.
 *
 * @throws MigrationError `bad_journal` with the damaged line.
 */
export async function* readAppends(handle: FileHandle, size: number): AsyncGenerator<Append> {
  let position: Position | undefined
  for await (const line of readLines(handle, { size })) {
    if (position === undefined) {
      checkHeader(line)
      position = AFTER_HEADER
      continue
    }
    if (isIncomplete(position, line)) return
    const append = decode(position, line.bytes)
    if (append === undefined) throw damaged(position)
    yield append
    position = append
  }
  if (position === undefined) checkHeader()
}

/** A last line with another byte in the place of its line feed is damaged. */
const isIncomplete = (previous: Position, { bytes, ended }: FileLine): boolean =>
  !ended && decode(previous, bytes.subarray(0, -1)) === undefined

function checkHeader(line?: FileLine): void {
  const text = line?.bytes.toString('latin1') ?? ''
  if (line?.ended && `${text}\n` === HEADER) return
  const version = text.startsWith(START)
    ? Number.parseInt(text.slice(START.length), 10)
    : Number.NaN
  if (version > VERSION) {
    throw new MigrationError('bad_journal', 'the journal is of a newer version of this package', 1)
  }
  if (version < VERSION) {
    throw new MigrationError(
      'bad_journal',
      'the journal is of an earlier version of this package: finish its migration with that version',
      1,
    )
  }
  throw new MigrationError(
    'bad_journal',
    'this is not the journal of a migration, or it is damaged',
    1,
  )
}

/** The error for the line after a position. */
export const damaged = ({ lineNumber }: Position): MigrationError =>
  new MigrationError('bad_journal', 'the journal is damaged', lineNumber + 1)
