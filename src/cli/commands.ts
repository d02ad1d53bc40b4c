import { coreClient } from '../migration/core/open-core-client.js'
import { fileJournal } from '../migration/journal/file-journal.js'
import { journalInUse } from '../migration/journal/journal-in-use.js'
import { openMigration } from '../migration/run/open-migration.js'
import { allow } from './allow.js'
import { checkStore } from './check-store.js'
import type { Command } from './command.js'
import { deny } from './deny.js'
import { denylist } from './denylist.js'
import { doctor } from './doctor.js'
import { migrateWith } from './migrate.js'
import { settle } from './settle.js'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  doctor,
  deny,
  allow,
  denylist,
  checkStore,
  settle,
  migrateWith({ coreClient, fileJournal, journalInUse, openMigration }),
]
