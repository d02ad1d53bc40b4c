import assert from 'node:assert/strict'
import type { Journal } from '../migration/journal/journal.js'
import { casesOf, type StoreCase, type StoreOpener, type StoreRules } from './stores/store-case.js'

/** The place of a journal. */
export interface JournalPlace {
  /** Opens the journal at this place, as another process would. The cases close it. */
  open(): Promise<Journal>
}

const LONG_LINE = 1024 * 1024
const APPENDS_AT_ONCE = 50

const RULES: StoreRules<JournalPlace> = {
  'a new journal has no lines': async (place) => {
    assert.deepEqual(await linesAt(place), [])
  },

  'lines are kept in the order in which they were appended, whoever opens it': async (place) => {
    await inJournal(place, async (journal) => {
      await journal.append(['a', 'b'])
      await journal.append(['c'])
      assert.deepEqual(await linesOf(journal), ['a', 'b', 'c'])
    })
    assert.deepEqual(await linesAt(place), ['a', 'b', 'c'])
    await inJournal(place, (journal) => journal.append(['d']))
    assert.deepEqual(await linesAt(place), ['a', 'b', 'c', 'd'])
  },

  'lines come back to the letter': async (place) => {
    const lines = ['', ' ', '{"a":"\\n"}', '"', '\\', 'é\u0301', '🙂', '\u2028', '\t', '\u0000']
    const long = 'x'.repeat(LONG_LINE)
    await inJournal(place, (journal) => journal.append([...lines, long]))
    assert.deepEqual(await linesAt(place), [...lines, long])
  },

  'an append of no lines changes nothing': async (place) => {
    await inJournal(place, async (journal) => {
      await journal.append([])
      await journal.append(['a'])
      await journal.append([])
    })
    assert.deepEqual(await linesAt(place), ['a'])
  },

  'appends at once are kept whole, in the order in which they were called': async (place) => {
    const appends = Array.from({ length: APPENDS_AT_ONCE }, (_, at) => [`${at} a`, `${at} b`])
    await inJournal(place, (journal) => Promise.all(appends.map((lines) => journal.append(lines))))
    assert.deepEqual(await linesAt(place), appends.flat())
  },

  'who has appended may change its list': async (place) => {
    await inJournal(place, async (journal) => {
      const lines = ['a']
      const appended = journal.append(lines)
      lines[0] = 'b'
      await appended
    })
    assert.deepEqual(await linesAt(place), ['a'])
  },

  'a reader that stops early takes nothing from others': async (place) => {
    await inJournal(place, async (journal) => {
      await journal.append(['a', 'b', 'c'])
      for await (const line of journal.read()) {
        assert.equal(line, 'a')
        break
      }
      assert.deepEqual(await linesOf(journal), ['a', 'b', 'c'])
      await journal.append(['d'])
    })
    assert.deepEqual(await linesAt(place), ['a', 'b', 'c', 'd'])
  },

  'who opens it while another has it is refused, and let in once it is closed': async (place) => {
    await inJournal(place, async (journal) => {
      await journal.append(['a'])
      await assert.rejects(openAndClose(place))
      await journal.append(['b'])
    })
    assert.deepEqual(await linesAt(place), ['a', 'b'])
  },

  'once it is closed, nothing is appended any more': async (place) => {
    const journal = await place.open()
    await journal.append(['a'])
    await journal.close()
    await assert.rejects(async () => journal.append(['b']))
    assert.deepEqual(await linesAt(place), ['a'])
  },
}

/**
 * The rules of a `Journal`, as cases for any test runner. Each needs a new place.
 *
 * @throws TypeError if it is given no function.
 *
 * @example
 * ```ts
 * import { randomUUID } from 'node:crypto'
 * import { fileJournal } from 'express-service-auth/migration'
 * import { journalCases } from 'express-service-auth/testing'
 *
 * function newPlace() {
 *   const folder = `journal-${randomUUID()}`
 *   return { open: () => fileJournal(folder) }
 * }
 * for (const { name, run } of journalCases(newPlace)) {
 *   await run()
 *   console.log(`ok: ${name}`)
 * }
 * ```
 */
export const journalCases = (newPlace: StoreOpener<JournalPlace>): readonly StoreCase[] =>
  casesOf(RULES, newPlace)

async function inJournal<T>(
  place: JournalPlace,
  use: (journal: Journal) => Promise<T>,
): Promise<T> {
  const journal = await place.open()
  try {
    return await use(journal)
  } finally {
    await journal.close()
  }
}

const openAndClose = (place: JournalPlace): Promise<void> => inJournal(place, async () => {})

const linesAt = (place: JournalPlace): Promise<string[]> => inJournal(place, linesOf)

async function linesOf(journal: Journal): Promise<string[]> {
  const lines: string[] = []
  for await (const line of journal.read()) lines.push(line)
  return lines
}
