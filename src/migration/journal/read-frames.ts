import type { FileHandle } from 'node:fs/promises'
import { MigrationError } from '../run/migration-error.js'
import { decodeBody, decodeHead, FIRST_CHECK, HEAD_BYTES, HEADER, VERSION } from './frame.js'

/** A unit of the file. */
export interface Unit {
  /** Its array, as JSON. Good until the next one is asked for. */
  readonly body: Buffer
  /** Where it ends in the file. */
  readonly end: number
  readonly check: string
  readonly line: number
}

const WINDOW_BYTES = 256 * 1024
const HEADER_BYTES = HEADER.length

/**
 * The whole units of a journal of `size` bytes, one at a time; ends before an incomplete last one.
 *
 * @throws MigrationError `bad_journal`, with the line of the damage.
 */
export async function* readUnits(handle: FileHandle, size: number): AsyncGenerator<Unit> {
  const bytesAt = windowOn(handle, size)
  checkHeader(await bytesAt(0, HEADER_BYTES))
  let previous = FIRST_CHECK
  let start = HEADER_BYTES
  for (let line = 2; start < size; line += 1) {
    const headBytes = await bytesAt(start, HEAD_BYTES)
    if (headBytes.length < HEAD_BYTES) return
    const head = decodeHead(previous, headBytes)
    if (head === undefined) throw damaged(line)
    const unit = await bytesAt(start, head.bytes)
    if (unit.length < head.bytes) return
    const body = decodeBody(head, unit)
    if (body === undefined) throw damaged(line)
    start += head.bytes
    previous = head.check
    yield { body, end: start, check: previous, line }
  }
}

/** What one `append` has written. */
export const linesOf = ({ body }: Unit): string[] => JSON.parse(body.toString())

/** What the first unit continues, where there is none yet. */
export const NO_UNIT: Omit<Unit, 'body'> = { end: HEADER_BYTES, check: FIRST_CHECK, line: 1 }

/**
 * The size of a file without the zeros at its end: bytes that a crash of the machine kept from the
 * disk after it had kept the new size.
 */
export async function writtenSize(handle: FileHandle, size: number): Promise<number> {
  const chunk = Buffer.alloc(WINDOW_BYTES)
  let end = size
  while (end > 0) {
    const start = Math.max(0, end - WINDOW_BYTES)
    const { bytesRead } = await handle.read(chunk, 0, end - start, start)
    let written = bytesRead
    while (written > 0 && chunk[written - 1] === 0) written -= 1
    if (written > 0) return start + written
    end = start
  }
  return 0
}

export const damaged = (line: number): MigrationError =>
  new MigrationError('bad_journal', 'the journal is damaged', line)

function checkHeader(bytes: Buffer): void {
  const text = bytes.toString('latin1')
  if (text === HEADER) return
  const version = /^\{"journal":"express-service-auth\/migration","version":(\d+)[,}]/.exec(
    text,
  )?.[1]
  if (version !== undefined && Number(version) > VERSION) {
    throw new MigrationError('bad_journal', 'the journal is of a newer version of this package', 1)
  }
  throw new MigrationError('bad_journal', 'this is no journal of a migration, or it is damaged', 1)
}

/** Reads where it is asked to, fewer bytes at the end, with one system call for many small pieces. */
function windowOn(handle: FileHandle, size: number) {
  let window: Buffer = Buffer.alloc(0)
  let windowStart = 0
  return async (start: number, bytes: number): Promise<Buffer> => {
    const end = Math.min(start + bytes, size)
    if (start < windowStart || end > windowStart + window.length) {
      window = await readAt(handle, start, Math.min(Math.max(bytes, WINDOW_BYTES), size - start))
      windowStart = start
    }
    return window.subarray(start - windowStart, end - windowStart)
  }
}

async function readAt(handle: FileHandle, start: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(bytes)
  let filled = 0
  while (filled < bytes) {
    const { bytesRead } = await handle.read(buffer, filled, bytes - filled, start + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return buffer.subarray(0, filled)
}
