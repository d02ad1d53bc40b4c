import { coreClient } from '../migration/core/open-core-client.js'
import { fileJournal } from '../migration/journal/file-journal.js'
import { checkStore } from './check-store/check-store.js'
import { allow } from './denylist/allow.js'
import { deny } from './denylist/deny.js'
import { denylist } from './denylist/list.js'
import { doctor } from './doctor/doctor.js'
import type { Command } from './frame/command.js'
import { migrateWith } from './migrate/migrate.js'
import { settle } from './settle/settle.js'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  doctor,
  deny,
  allow,
  denylist,
  checkStore,
  settle,
  migrateWith({ coreClient, fileJournal }),
]
