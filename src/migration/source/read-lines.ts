import type { FileHandle } from 'node:fs/promises'

export interface FileLine {
  /** Counts from 1. */
  readonly number: number
  /** The line without its line feed. Valid until the next line is read. */
  readonly bytes: Buffer
  /** Whether a line feed ended the line, which the last line of a file may lack. */
  readonly ended: boolean
}

interface ReadLinesOptions {
  /** A longer line is yielded incomplete, and the caller must then stop. Default: no limit. */
  readonly maxLineBytes?: number
  /** How much of the file is read. Default: all of it. */
  readonly size?: number
  /** Called with all bytes that are read. */
  readonly onRead?: (bytes: Buffer) => void
}

const CHUNK_BYTES = 256 * 1024
const LINE_FEED = 0x0a

/** Yields the lines of a file from its start. The buffer has room for one line and a CR. */
export async function* readLines(
  handle: FileHandle,
  {
    maxLineBytes = Number.POSITIVE_INFINITY,
    size = Number.POSITIVE_INFINITY,
    onRead,
  }: ReadLinesOptions = {},
): AsyncGenerator<FileLine> {
  let buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  /** Number of bytes of the incomplete line at the start of the buffer. */
  let held = 0
  let number = 1
  for (let offset = 0; offset < size; ) {
    const wanted = Math.min(buffer.length - held, size - offset)
    const { bytesRead } = await handle.read(buffer, held, wanted, offset)
    if (bytesRead === 0) break
    offset += bytesRead
    const end = held + bytesRead
    onRead?.(buffer.subarray(held, end))
    let start = 0
    let feed = buffer.subarray(0, end).indexOf(LINE_FEED, held)
    while (feed !== -1) {
      yield { number, bytes: buffer.subarray(start, feed), ended: true }
      number += 1
      start = feed + 1
      feed = buffer.subarray(0, end).indexOf(LINE_FEED, start)
    }
    held = end - start
    if (held > maxLineBytes + 1) yield { number, bytes: buffer.subarray(start, end), ended: false }
    if (start > 0) buffer.copyWithin(0, start, end)
    if (held > buffer.length / 2) buffer = Buffer.concat([buffer], 2 * buffer.length)
  }
  if (held > 0) yield { number, bytes: buffer.subarray(0, held), ended: false }
}
