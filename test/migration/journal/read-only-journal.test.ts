import { appendFile, chmod, readFile, writeFile } from 'node:fs/promises'
import { expect, it, onTestFinished } from 'vitest'
import { fileJournal, readOnlyJournal } from '../../../src/migration/journal/file-journal.js'
import { launch } from '../../support/process/launch.js'
import { fileOf, folderOfTest, linesOf, withJournal } from './journals.js'

const HOLDER = new URL('holder.ts', import.meta.url)

it('tells what another has appended by then, and goes on to', async () => {
  const folder = await folderOfTest()
  const holder = await fileJournal(folder)
  onTestFinished(() => holder.close())
  await holder.append(['a', 'b'])
  const reader = await readOnlyJournal(folder)
  onTestFinished(() => reader.close())
  expect(await linesOf(reader)).toEqual(['a', 'b'])
  await holder.append(['c'])
  expect(await linesOf(reader)).toEqual(['a', 'b', 'c'])
  await expect(reader.append(['d'])).rejects.toThrow('for reading alone')
  expect(await linesOf(holder)).toEqual(['a', 'b', 'c'])
})

it('never tells a part of what is being appended', async () => {
  const folder = await folderOfTest()
  const holder = await launch<string>(HOLDER, { args: [folder], env: { WANTS: 'appends' } })
  onTestFinished(() => holder.kill())
  expect(holder.greeting).toBe('open')
  const reader = await readOnlyJournal(folder)
  onTestFinished(() => reader.close())
  let known = 0
  for (let look = 0; look < 30 || known < 40; look += 1) {
    const lines = await linesOf(reader)
    expect(lines.length % 2).toBe(0)
    expect(lines.length).toBeGreaterThanOrEqual(known)
    known = lines.length
    const last = known / 2 - 1
    if (last >= 0) expect(lines.slice(-2)).toEqual([`${last}`, 'x'.repeat(last % 5000)])
  }
})

it('leaves an append that was cut off where it is', async () => {
  const folder = await folderOfTest()
  await withJournal(folder, (journal) => journal.append(['a']))
  await appendFile(fileOf(folder), '{"check":"0000')
  const bytes = await readFile(fileOf(folder))
  const reader = await readOnlyJournal(folder)
  onTestFinished(() => reader.close())
  expect(await linesOf(reader)).toEqual(['a'])
  expect(await readFile(fileOf(folder))).toEqual(bytes)
})

it('refuses what is no journal, is damaged or open to others', async () => {
  const folder = await folderOfTest()
  await expect(readOnlyJournal(folder)).rejects.toMatchObject({ code: 'bad_journal' })

  await withJournal(folder, (journal) => journal.append(['a']))
  const reader = await readOnlyJournal(folder)
  onTestFinished(() => reader.close())
  await chmod(fileOf(folder), 0o640)
  await expect(linesOf(reader)).rejects.toThrow('chmod 600')
  await chmod(fileOf(folder), 0o600)
  const text = await readFile(fileOf(folder), 'utf8')
  await writeFile(fileOf(folder), text.replace('["a"]', '["b"]'))
  await expect(linesOf(reader)).rejects.toThrow('the journal is damaged')
})
