import type { FileHandle } from 'node:fs/promises'
import {
  checkHeader,
  damaged,
  decodeBody,
  decodeHead,
  HEAD_BYTES,
  HEADER,
  NO_UNIT,
  type Unit,
} from './journal-format.js'

const WINDOW_BYTES = 256 * 1024

/**
 * Yields the complete units of a journal of `size` bytes. Leaves out an incomplete last unit.
 *
 * @throws MigrationError `bad_journal` with the damaged line.
 */
export async function* readUnits(handle: FileHandle, size: number): AsyncGenerator<Unit> {
  const bytesAt = windowOn(handle, size)
  checkHeader(await bytesAt(0, HEADER.length))
  let { check: previous, end: start } = NO_UNIT
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

/**
 * Returns the size of a file without trailing zeros, which appear if the machine crashes after the new size
 * has reached the disk and before the data has.
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

/** Returns a function that reads bytes at an offset, fewer at the file's end. Many small reads share a system call. */
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
