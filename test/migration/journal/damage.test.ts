import { open } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { fileOf, filesAfter, folderOfTest, linesOf, recovered, withJournal } from './journals.js'

const APPENDS = [['a'], ['b', 'é\u0000"\\']] as const

describe('a journal whose file was changed', () => {
  it('holds exactly the whole appends before a cut, and goes on from there', async () => {
    const folder = await folderOfTest()
    const files = await filesAfter(folder, APPENDS)
    const whole = files.at(-1) as Buffer
    const header = files[0]?.length ?? 0
    for (let size = header; size < whole.length; size += 1) {
      const kept = files.filter(({ length }) => length <= size).length - 1
      const lines = APPENDS.slice(0, kept).flat()
      expect(await recovered(folder, whole.subarray(0, size))).toEqual(lines)
      if (size % 7 !== 0) continue
      await withJournal(folder, (journal) => journal.append(['more']))
      expect(await withJournal(folder, linesOf)).toEqual([...lines, 'more'])
    }
  })

  it('holds them as well when the rest of the last one never reached the disk', async () => {
    const folder = await folderOfTest()
    const files = await filesAfter(folder, APPENDS)
    const whole = files.at(-1) as Buffer
    const before = files.at(-2)?.length ?? 0
    for (let size = before; size < whole.length; size += 5) {
      const zeros = Buffer.from(whole).fill(0, size)
      expect(await recovered(folder, zeros)).toEqual(APPENDS.slice(0, -1).flat())
    }
  })

  it('is refused, whatever bit of it was changed', async () => {
    const folder = await folderOfTest()
    const whole = (await filesAfter(folder, APPENDS)).at(-1) as Buffer
    const handle = await open(fileOf(folder), 'r+')
    const reader = await fileJournal(folder)
    try {
      for (let at = 0; at < whole.length; at += 1) {
        const byte = (whole[at] ?? 0) ^ (1 << (at % 8))
        await handle.write(Buffer.of(byte), 0, 1, at)
        await expect(linesOf(reader), `byte ${at}`).rejects.toMatchObject({
          code: 'bad_journal',
          line: whole.subarray(0, at).toString('latin1').split('\n').length,
        })
        await handle.write(whole, at, 1, at)
      }
      expect(await linesOf(reader)).toEqual(APPENDS.flat())
    } finally {
      await reader.close()
      await handle.close()
    }
  })

  it('is refused, or holds a prefix of whole appends, whatever was done to it', async () => {
    const folder = await folderOfTest()
    const files = await filesAfter(folder, APPENDS)
    const whole = files.at(-1) as Buffer
    const prefixes = files.map((_, count) => JSON.stringify(APPENDS.slice(0, count).flat()))
    const place = fc.nat({ max: whole.length })
    await fc.assert(
      fc.asyncProperty(place, place, fc.uint8Array({ maxLength: 40 }), async (one, other, put) => {
        const [from, to] = one < other ? [one, other] : [other, one]
        const changed = Buffer.concat([whole.subarray(0, from), put, whole.subarray(to)])
        if (changed.equals(whole)) return
        const lines = await recovered(folder, changed).catch(({ code }) => String(code))
        if (lines === 'bad_journal') return
        expect(prefixes).toContain(JSON.stringify(lines))
      }),
      { numRuns: 100, examples: [[whole.length, whole.length, Uint8Array.of(0)]] },
    )
  })
})
