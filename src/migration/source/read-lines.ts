import type { FileHandle } from 'node:fs/promises'

export interface Line {
  /** Counts from 1. */
  readonly number: number
  /** The line without its line feed. Valid until the next line is read. */
  readonly bytes: Buffer
  /** The last line of a file may lack its line feed. */
  readonly ended: boolean
}

const CHUNK_BYTES = 256 * 1024
const LINE_FEED = 0x0a

/**
 * Yields the lines of a file. The buffer has room for one line of `maxBytes` and a CR. A longer line is
 * yielded incomplete, and the caller must then stop. `seen` is called with all bytes that are read.
 */
export async function* readLines(
  handle: FileHandle,
  maxBytes: number,
  seen: (bytes: Buffer) => void,
): AsyncGenerator<Line> {
  let buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  /** Number of bytes of the incomplete line at the start of the buffer. */
  let held = 0
  let number = 1
  for (;;) {
    const { bytesRead } = await handle.read(buffer, held, buffer.length - held, null)
    if (bytesRead === 0) break
    const end = held + bytesRead
    seen(buffer.subarray(held, end))
    let start = 0
    let feed = buffer.subarray(0, end).indexOf(LINE_FEED, held)
    while (feed !== -1) {
      yield { number, bytes: buffer.subarray(start, feed), ended: true }
      number += 1
      start = feed + 1
      feed = buffer.subarray(0, end).indexOf(LINE_FEED, start)
    }
    held = end - start
    if (held > maxBytes + 1) yield { number, bytes: buffer.subarray(start, end), ended: false }
    if (start > 0) buffer.copyWithin(0, start, end)
    if (held > buffer.length / 2) buffer = Buffer.concat([buffer], 2 * buffer.length)
  }
  if (held > 0) yield { number, bytes: buffer.subarray(0, held), ended: false }
}
