import { migrateWith } from '../../../src/cli/migrate/migrate.js'
import { run } from '../../../src/cli/run-command.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import type { Journal } from '../../../src/migration/journal/file-journal.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'

// `service-auth migrate`, which dies before or after the journal's nth `append`: DIE_AT=3:before.

const [number = '', moment] = (process.env['DIE_AT'] ?? '').split(':')

async function dyingJournal(directory: string): Promise<Journal> {
  const journal = await fileJournal(directory)
  let appends = 0
  const dieAt = async (now: string): Promise<void> => {
    if (appends !== Number(number) || now !== moment) return
    process.kill(process.pid, 'SIGKILL')
    await new Promise(() => undefined)
  }
  return {
    ...journal,
    async append(lines) {
      appends += 1
      await dieAt('before')
      await journal.append(lines)
      await dieAt('after')
    },
  }
}

const command = migrateWith({ coreClient, fileJournal: dyingJournal })
process.exitCode = await run(process.argv.slice(2), process, [command])
