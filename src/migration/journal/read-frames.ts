import type { FileHandle } from 'node:fs/promises'
import { MigrationError } from '../run/migration-error.js'
import { decodeBody, decodeHead, FIRST_CHECK, HEAD_BYTES, HEADER, VERSION } from './frame.js'

/** One `append` of the file. */
export interface Unit {
  /** Its array as JSON. Valid until the next unit is read. */
  readonly body: Buffer
  /** Offset of its end in the file. */
  readonly end: number
  readonly check: string
  readonly line: number
}

const WINDOW_BYTES = 256 * 1024
const HEADER_BYTES = HEADER.length

/**
 * Yields the complete units of a journal of `size` bytes, without an incomplete last one.
 *
 * @throws MigrationError `bad_journal` with the damaged line.
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

/** Returns the lines of one `append`. */
export const linesOf = ({ body }: Unit): string[] => JSON.parse(body.toString())

/** The position before the first unit. */
export const NO_UNIT: Omit<Unit, 'body'> = { end: HEADER_BYTES, check: FIRST_CHECK, line: 1 }

/**
 * Returns the size of a file without trailing zeros. They appear if the machine crashes after the new size
 * reached the disk but before the data did.
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

/** Reads at any offset, fewer bytes at the end of the file, with one system call for many small reads. */
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
