import type { Migration } from '../../../../src/migration/run/migration.js'
import type { Source } from '../../../../src/migration/source/source.js'
import type { MemoryJournal } from './memory-journal.js'
import { sourceOf } from './people.js'
import { correctionsOf, type Story } from './story.js'

export interface CorrectionDesk {
  /** The files that the journal knows. */
  applied(): readonly Source[]
  /** Whom the journal knows as left out. */
  leftOut(): ReadonlySet<string>
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
    leftOut: () => {
      const ordinals = journal.lines.flatMap((line): [number][] => {
        const entry = JSON.parse(line)
        return entry.type === 'corrected' ? entry.leftOut : []
      })
      return new Set(ordinals.map(([ordinal]) => `user-${ordinal}`))
    },
    async write(migration: Migration): Promise<Source> {
      const failed: string[] = []
      for await (const { externalUserId, state } of migration.identities()) {
        if (state === 'failed' || state === 'invalid') failed.push(externalUserId)
      }
      files.length = applied().length
      const file = sourceOf(correctionsOf(story, failed), `corrections-${files.length}`)
      files.push(file)
      return file
    },
  }
}
