import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileJournal, type Journal } from 'express-service-auth/migration'
import { type JournalPlace, journalCases } from 'express-service-auth/testing'
import { describe, expect, it, onTestFinished } from 'vitest'

async function newFolder(): Promise<JournalPlace> {
  const folder = await mkdtemp(join(tmpdir(), 'esa-journal-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return { open: () => fileJournal(join(folder, 'journal')) }
}

describe('the cases of a journal', () => {
  for (const { name, run } of journalCases(newFolder)) {
    it(`hold for one in a file: ${name}`, () => run())
  }

  it('need a function that gives a place', () => {
    expect(() => journalCases(undefined as never)).toThrow(TypeError)
  })
})

/** A journal in memory, which `change` makes wrong. */
function placeInMemory(change: (journal: Journal, lines: string[]) => Partial<Journal>) {
  const lines: string[] = []
  let isOpen = false
  return {
    async open(): Promise<Journal> {
      if (isOpen) throw new Error('in use')
      isOpen = true
      let isClosed = false
      const journal: Journal = {
        async *read() {
          yield* [...lines]
        },
        async append(given) {
          if (isClosed) throw new Error('closed')
          lines.push(...given)
        },
        async close() {
          isClosed = true
          isOpen = false
        },
      }
      return { ...journal, ...change(journal, lines) }
    },
  }
}

const WRONG: Record<string, (journal: Journal, lines: string[]) => Partial<Journal>> = {
  'loses what was there': (_journal, lines) => ({
    async *read() {
      yield* lines.splice(0)
    },
  }),
  'cuts blanks': ({ append }) => ({ append: (given) => append(given.map((one) => one.trim())) }),
  'drops what is empty': ({ append }) => ({
    append: (given) => append(given.filter((one) => one !== '')),
  }),
  'keeps the last line of an append alone': ({ append }) => ({
    append: (given) => append(given.slice(-1)),
  }),
  'appends in another order': ({ append }) => ({
    async append(given) {
      await new Promise((resolve) => setTimeout(resolve, Number(given[0]?.[0]) % 2 ? 0 : 5))
      await append(given)
    },
  }),
  'reads the list when it is too late': ({ append }) => ({
    async append(given) {
      await Promise.resolve()
      await append(given)
    },
  }),
  'takes lines after its end': (_journal, lines) => ({
    async append(given) {
      lines.push(...given)
    },
  }),
}

describe('a journal that is wrong', () => {
  const failures = async (newPlace: () => JournalPlace): Promise<string[]> => {
    const names: string[] = []
    for (const { name, run } of journalCases(newPlace)) await run().catch(() => names.push(name))
    return names
  }

  it('is none that keeps the rules', async () => {
    expect(await failures(() => placeInMemory(() => ({})))).toEqual([])
  })

  it.each(Object.entries(WRONG))('that %s is found out', async (_name, change) => {
    expect(await failures(() => placeInMemory(change))).not.toEqual([])
  })

  it('that lets two in is found out', async () => {
    const shared: string[] = []
    const place: JournalPlace = {
      async open() {
        let isClosed = false
        return {
          async *read() {
            yield* [...shared]
          },
          async append(given) {
            if (isClosed) throw new Error('closed')
            shared.push(...given)
          },
          async close() {
            isClosed = true
          },
        }
      },
    }
    expect(await failures(() => place)).toContain(
      'who opens it while another has it is refused, and let in once it is closed',
    )
  })
})
