import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { launch } from '../../support/process/launch.js'
import { folderOfTest, linesOf } from './journals.js'

const HOLDER = new URL('holder.ts', import.meta.url)
const ROUNDS = 50
/** Between two kills. */
const FIGHT_MS = 250

const holderOf = (folder: string) => launch<string>(HOLDER, { args: [folder] })

describe('the lock of a journal', () => {
  it('is held against this process and others, and freed by close', async () => {
    const folder = await folderOfTest()
    const first = await fileJournal(folder)
    await expect(fileJournal(folder)).rejects.toMatchObject({ code: 'journal_in_use' })
    const other = await holderOf(folder)
    expect(other.greeting).toBe('journal_in_use')
    await other.kill()
    await first.close()
    await (await fileJournal(folder)).close()
    expect(await readdir(join(folder, 'lock'))).toEqual([])
  })

  it('is held by a process that is stopped', async () => {
    const folder = await folderOfTest()
    const holder = await holderOf(folder)
    holder.child.kill('SIGSTOP')
    await expect(fileJournal(folder)).rejects.toMatchObject({ code: 'journal_in_use' })
    await holder.kill()
    await (await fileJournal(folder)).close()
  })

  it('goes to one at most of many in one process, round after round', async () => {
    const folder = await folderOfTest()
    for (let round = 0; round < ROUNDS; round += 1) {
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, () => fileJournal(folder)),
      )
      const open = results.filter((result) => result.status === 'fulfilled')
      expect(open.length).toBeLessThanOrEqual(1)
      await open[0]?.value.close()
      await (await fileJournal(folder)).close()
    }
  })

  it('is held by one at a time of processes that fight for it and are killed', async () => {
    const folder = await folderOfTest()
    const env = { WANTS: 'turns' }
    const rivals = await Promise.all(
      Array.from({ length: 4 }, () => launch<string>(HOLDER, { args: [folder], env })),
    )
    for (const { kill } of rivals) {
      await delay(FIGHT_MS)
      await kill()
    }
    const journal = await fileJournal(folder)
    const turns = (await linesOf(journal)).map((line) => line.split(' '))
    await journal.close()
    expect(turns.length).toBeGreaterThan(10)
    let inside: string | undefined
    let killed = 0
    for (const [step, turn] of turns) {
      if (step === 'out') expect(turn).toBe(inside)
      else if (inside !== undefined) killed += 1
      inside = step === 'in' ? turn : undefined
    }
    expect(killed).toBeLessThanOrEqual(rivals.length)
    expect(await readdir(join(folder, 'lock'))).toEqual([])
  })

  it('works where the path is longer than that of a socket may be', async () => {
    const folder = join(await folderOfTest(), 'é'.repeat(100), 'x'.repeat(200))
    const first = await fileJournal(folder)
    await expect(fileJournal(folder)).rejects.toMatchObject({ code: 'journal_in_use' })
    await first.close()
    const second = await fileJournal(folder)
    expect(await linesOf(second)).toEqual([])
    await second.close()
    expect(await readdir(join(folder, 'lock'))).toEqual([])
  })

  it('is not disturbed by what a killed process left unfinished', async () => {
    const folder = await folderOfTest()
    await (await fileJournal(folder)).close()
    await mkdir(join(folder, 'lock', 'foreign'))
    const left = join(folder, 'lock', '0123456789abcdef')
    await writeFile(left, '')
    await (await fileJournal(folder)).close()
    expect(await readdir(join(folder, 'lock'))).toEqual(['foreign'])
  })
})
