import type { FileHandle } from 'node:fs/promises'

/** A line of a file. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** Without the line feed. Good until the next line is asked for. */
  readonly bytes: Buffer
  /** The last line of a file may lack its line feed. */
  readonly ended: boolean
}

const CHUNK_BYTES = 256 * 1024
const LINE_FEED = 0x0a

/**
 * The lines of a file, with memory for one of them of at most `maxBytes` and a CR. A longer one is given
 * as far as it was read, and must be the last that is asked for. `seen` is called with all that is read.
 */
export async function* readLines(
  handle: FileHandle,
  maxBytes: number,
  seen: (bytes: Buffer) => void,
): AsyncGenerator<Line> {
  let buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  /** Of the bytes of a line that is not whole yet. */
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
