import type { Journal } from '../journal/journal.js'
import type { Source } from '../source/source.js'
import { identityReports } from './identities.js'
import { openJournaledState } from './journaled-state.js'
import type { Migration } from './migration.js'
import { reportOf } from './report-of.js'
import { createSourceIndexBuilder } from './source-index.js'
import { SYSTEM_TIMING } from './timing.js'

export interface ReadMigrationOptions {
  readonly journal: Journal
  readonly source: Source
  readonly corrections: readonly Source[]
  readonly batchBytes: number
}

/** The functions of a migration that do not call the core. */
export type MigrationReader = Pick<Migration, 'status' | 'identities' | 'close'>

/**
 * Opens a migration to read its reports. Only `identities` reads the source.
 *
 * @throws MigrationError `bad_journal`.
 */
export async function readMigration({
  journal,
  corrections,
  ...settings
}: ReadMigrationOptions): Promise<MigrationReader> {
  const timing = SYSTEM_TIMING
  const journaled = await openJournaledState(journal)
  const closing = new AbortController()
  return {
    status: async () => reportOf(journaled.state, { now: timing.now() }),
    async *identities() {
      const { signal } = closing
      const context = { settings, journaled, timing, signal }
      const builder = await createSourceIndexBuilder(context, corrections)
      yield* identityReports(journaled, builder.withSignal(signal))
    },
    async close() {
      closing.abort(new Error('the migration is closed'))
      await journal.close()
    },
  }
}
