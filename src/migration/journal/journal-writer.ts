import type { FileHandle } from 'node:fs/promises'
import { MigrationError } from '../run/migration-error.js'
import type { Unit } from './frames.js'
import { bodyOf, encodeUnit } from './frames.js'

export interface JournalWriter {
  append(lines: readonly string[]): Promise<void>
  /** Number of bytes that are on disk. */
  size(): number
  /** Resolves once no write is in progress. */
  settled(): Promise<void>
}

interface Waiting {
  readonly body: Buffer
  readonly resolve: () => void
  readonly reject: (error: MigrationError) => void
}

const LINE_BREAK = /[\r\n]/

/** Appends that arrive during a write are combined into the next write. */
export function createWriter(handle: FileHandle, last: Pick<Unit, 'end' | 'check'>): JournalWriter {
  let { end, check } = last
  let failure: MigrationError | undefined
  let waiting: Waiting[] = []
  let writing: Promise<void> | undefined

  async function write(taken: readonly Waiting[]): Promise<void> {
    let next = check
    const units = taken.map(({ body }) => {
      const unit = encodeUnit(next, body)
      next = unit.check
      return unit.bytes
    })
    const bytes = Buffer.concat(units)
    await writeAt(handle, bytes, end)
    await handle.datasync()
    end += bytes.length
    check = next
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const taken = waiting
      waiting = []
      try {
        await write(taken)
        for (const { resolve } of taken) resolve()
      } catch (error) {
        failure = unwritable(error)
        // After a failed sync it is unknown which bytes are on disk, so all bytes of this write are removed.
        await handle.truncate(end).catch(() => {})
        for (const { reject } of [...taken, ...waiting.splice(0)]) reject(failure)
      }
    }
    writing = undefined
  }

  return {
    async append(lines) {
      if (lines.some((line) => LINE_BREAK.test(line))) {
        throw new TypeError('a line of a journal must not hold a line break')
      }
      if (failure !== undefined) throw failure
      if (lines.length === 0) return
      const body = bodyOf(lines)
      await new Promise<void>((resolve, reject) => {
        waiting.push({ body, resolve, reject })
        writing ??= writeAll()
      })
    },
    size: () => end,
    settled: async () => writing,
  }
}

function unwritable(error: unknown): MigrationError {
  const { code } = error as NodeJS.ErrnoException
  return new MigrationError(
    'bad_journal',
    `the journal cannot be written${code ? ` (${code})` : ''}`,
  )
}

/** Writes in a loop, because a disk that is nearly full may accept only a part. */
async function writeAt(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  let written = 0
  while (written < bytes.length) {
    const { bytesWritten } = await handle.write(
      bytes,
      written,
      bytes.length - written,
      position + written,
    )
    written += bytesWritten
  }
}
