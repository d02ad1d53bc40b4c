/**
 * What makes a migration impossible until a person has fixed it: a closed list.
 *
 * - `bad_source`: missing, empty, not NDJSON in UTF-8, a record without a usable `externalUserId` of
 *   its own, or changed since the run began.
 * - `bad_corrections`: the same of corrections, or ones that do not fit the state of their identity.
 * - `bad_journal`: damaged, of another source or core, of a newer format, without the run that a step
 *   needs, or it cannot be written.
 * - `journal_in_use`: another run has it.
 */
export type MigrationErrorCode = 'bad_source' | 'bad_corrections' | 'bad_journal' | 'journal_in_use'

/** One line that names what to fix. Never holds account data. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError'
  /** What is to be fixed. */
  readonly code: MigrationErrorCode
  /** Of the source, the corrections or the journal, from 1. */
  declare readonly line?: number

  /** `openMigration` and `fileJournal` make these. */
  constructor(code: MigrationErrorCode, message: string, line?: number) {
    super(line === undefined ? message : `line ${line}: ${message}`)
    this.code = code
    if (line !== undefined) this.line = line
  }
}
