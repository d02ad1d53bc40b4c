import { setTimeout as delay } from 'node:timers/promises'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import type { MigrationError } from '../../../src/migration/run/migration-error.js'

// Opens a journal in a process of its own, and says what came of it. `APPENDS` asks for lines until the
// process is killed, and each that has been kept is told.

const [directory = '', opensAt = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

// All of a test's processes open it in the same moment.
await delay(Math.max(0, Number(opensAt) - Date.now()))
try {
  const journal = await fileJournal(directory)
  process.send?.('open')
  if (process.env['APPENDS'] === 'endless') {
    for (let count = 0; ; count += 1) {
      await journal.append([`${count}`, 'x'.repeat(count % 5000)])
      process.send?.(count)
    }
  }
} catch (error) {
  process.send?.((error as MigrationError).code)
}
