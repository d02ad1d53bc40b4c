import type { Journal } from '../../../src/migration/journal/file-journal.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'

// Appends until there is no room, opens the journal again, and tells what it saw.

const LINE = 'x'.repeat(1000)
const [folder = ''] = process.argv.slice(2)

async function refusalOf(journal: Journal, line: string): Promise<string | undefined> {
  try {
    await journal.append([line])
    return undefined
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return `${code}: ${message}`
  }
}

async function countOf(journal: Journal): Promise<number> {
  let count = 0
  for await (const _ of journal.read()) count += 1
  return count
}

const journal = await fileJournal(folder)
let kept = 0
let first: string | undefined
while (first === undefined) {
  first = await refusalOf(journal, LINE)
  if (first === undefined) kept += 1
}
const second = await refusalOf(journal, 'small')
const lines = await countOf(journal)
await journal.close()
const again = await fileJournal(folder)
const reopened = await countOf(again)
await again.close()
process.stdout.write(JSON.stringify({ kept, first, second, lines, reopened }))
