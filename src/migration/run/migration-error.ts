/**
 * A problem that a person must fix before the migration can continue. This list is closed.
 *
 * - `bad_source`: the source is missing, empty or not NDJSON in UTF-8, has changed since the run began,
 *   or has a record whose `externalUserId` is unusable or repeats that of another record.
 * - `bad_corrections`: the same for corrections, or a correction does not fit the state of its identity.
 * - `bad_journal`: the journal is damaged, belongs to another source or core, has a newer format, lacks
 *   the run that a step needs, or cannot be written.
 * - `journal_in_use`: another run has the journal open.
 */
export type MigrationErrorCode = 'bad_source' | 'bad_corrections' | 'bad_journal' | 'journal_in_use'

/** An error whose message is one line that names the problem. It never contains account data. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError'
  /** The kind of problem. */
  readonly code: MigrationErrorCode
  /** Line of the source, the corrections or the journal, from 1. */
  declare readonly line?: number

  /** Created by `openMigration` and `fileJournal`. */
  constructor(code: MigrationErrorCode, message: string, line?: number) {
    super(line === undefined ? message : `line ${line}: ${message}`)
    this.code = code
    if (line !== undefined) this.line = line
  }
}
