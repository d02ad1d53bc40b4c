import type { Journal } from '../../../../src/migration/journal/file-journal.js'

export interface MemoryJournal extends Journal {
  readonly lines: string[]
}

/** A journal that outlives the runs of a test. `onAppend` may throw: then nothing is kept. */
export function memoryJournal(
  lines: string[] = [],
  onAppend: (lines: readonly string[]) => unknown = () => undefined,
): MemoryJournal {
  return {
    lines,
    async *read() {
      yield* [...lines]
    },
    async append(added) {
      await onAppend(added)
      lines.push(...added)
    },
    async close() {},
  }
}
