import { setTimeout as delay } from 'node:timers/promises'
import type { Journal } from '../../../src/migration/journal/file-journal.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import type { MigrationError } from '../../../src/migration/run/migration-error.js'

// Opens a journal in a process of its own, and says what came of it. Then it does what `WANTS` says until
// it is killed: `appends` keeps lines and tells each that has been kept; `turns` opens and closes it.

const [directory = ''] = process.argv.slice(2)
const wants = process.env['WANTS']
process.on('disconnect', () => process.exit())

const tell = (message: unknown): void => void process.send?.(message)

async function appendEndlessly(journal: Journal): Promise<never> {
  for (let count = 0; ; count += 1) {
    await journal.append([`${count}`, 'x'.repeat(count % 5000)])
    tell(count)
  }
}

async function takeTurns(): Promise<never> {
  for (let turn = 0; ; turn += 1) {
    const name = `${process.pid}-${turn}`
    try {
      const journal = await fileJournal(directory)
      await journal.append([`in ${name}`])
      await delay(1)
      await journal.append([`out ${name}`])
      await journal.close()
    } catch (error) {
      if ((error as MigrationError).code !== 'journal_in_use') throw error
    }
  }
}

try {
  if (wants === 'turns') {
    tell('ready')
    await takeTurns()
  }
  const journal = await fileJournal(directory)
  tell('open')
  if (wants === 'appends') await appendEndlessly(journal)
} catch (error) {
  tell((error as MigrationError).code)
}
