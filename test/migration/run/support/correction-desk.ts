import type { Migration } from '../../../../src/migration/run/migration.js'
import type { Source } from '../../../../src/migration/source/source.js'
import type { MemoryJournal } from './memory-journal.js'
import { sourceOf } from './people.js'
import { correctionsOf, type Story } from './story.js'

export interface CorrectionDesk {
  /** The files that the journal knows. */
  applied(): readonly Source[]
  /** Another one. */
  write(migration: Migration): Promise<Source>
}

/** Where a person writes a file of corrections for those who have failed, as often as some fail. */
export function correctionDesk(story: Story, journal: MemoryJournal): CorrectionDesk {
  const files: Source[] = []
  const applied = () =>
    files.slice(0, journal.lines.filter((line) => line.startsWith('{"type":"corrected"')).length)
  return {
    applied,
    async write(migration: Migration): Promise<Source> {
      const failed: string[] = []
      for await (const { externalUserId, state } of migration.identities()) {
        if (state === 'failed' && externalUserId !== undefined) failed.push(externalUserId)
      }
      files.length = applied().length
      const file = sourceOf(correctionsOf(story, failed), `corrections-${files.length}`)
      files.push(file)
      return file
    },
  }
}
