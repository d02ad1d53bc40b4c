import { execFile } from 'node:child_process'
import {
  chmod,
  mkdir,
  readFile,
  rename,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { compile } from '../../support/process/compile.js'
import { launch } from '../../support/process/launch.js'
import { until } from '../../support/until.js'
import { fileOf, filesAfter, folderOfTest, linesOf, recovered, withJournal } from './journals.js'

const run = promisify(execFile)
const HOLDER = new URL('holder.ts', import.meta.url)
const FILLER = new URL('filler.ts', import.meta.url)
const KILLS = 10

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777

const badJournal = (message: RegExp, line?: number) =>
  expect.objectContaining({
    name: 'MigrationError',
    code: 'bad_journal',
    message: expect.stringMatching(message),
    ...(line === undefined ? {} : { line }),
  })

describe('fileJournal', () => {
  it('keeps lines over opening, in their order, whatever they hold', async () => {
    const folder = join(await folderOfTest(), 'of', 'a', 'run')
    const lines = ['{"a":"\\u0000é"}', '', 'a\nb', '\ud800', '"'.repeat(300_000)]
    await withJournal(folder, async (journal) => {
      expect(await linesOf(journal)).toEqual([])
      await journal.append(lines.slice(0, 2))
      await journal.append([])
      await journal.append(lines.slice(2))
      expect(await linesOf(journal)).toEqual(lines)
    })
    expect(await withJournal(folder, linesOf)).toEqual(lines)
    expect([await modeOf(folder), await modeOf(fileOf(folder))]).toEqual([0o700, 0o600])
    expect(await modeOf(join(folder, 'lock'))).toBe(0o700)
  })

  it('writes NDJSON', async () => {
    const folder = await folderOfTest()
    await withJournal(folder, (journal) => journal.append(['a', 'b']))
    const lines = (await readFile(fileOf(folder), 'utf8')).trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { journal: 'express-service-auth/migration', version: 3 },
      { check: expect.stringMatching(/^[0-9a-f]{32}$/), lines: ['a', 'b'] },
    ])
  })

  it('keeps appends that are made at once in the order of their calls', async () => {
    const folder = await folderOfTest()
    const names = Array.from({ length: 200 }, (_, index) => `${index}`)
    await withJournal(folder, (journal) => Promise.all(names.map((name) => journal.append([name]))))
    expect(await withJournal(folder, linesOf)).toEqual(names)
  })

  it('takes and gives nothing after close, which waits for what is being written', async () => {
    const folder = await folderOfTest()
    const journal = await fileJournal(folder)
    const appended = journal.append(['a'])
    await Promise.all([journal.close(), journal.close()])
    await appended
    await expect(journal.append(['b'])).rejects.toThrow('closed')
    await expect(linesOf(journal)).rejects.toThrow('closed')
    expect(await withJournal(folder, linesOf)).toEqual(['a'])
  })

  it.each(['', undefined, 3])('refuses %s as a directory', async (directory) => {
    await expect(fileJournal(directory as string)).rejects.toThrow(TypeError)
  })

  it('keeps whatever it has said to be kept when its process is killed', async () => {
    const folder = await folderOfTest()
    let kept = -1
    for (let kill = 0; kill < KILLS; kill += 1) {
      const holder = await launch<string>(HOLDER, { args: [folder], env: { WANTS: 'appends' } })
      expect(holder.greeting).toBe('open')
      let last = -1
      holder.child.on('message', (count: number) => {
        last = count
      })
      await until('some appends', async () => last > 5 + kill)
      await expect(fileJournal(folder)).rejects.toMatchObject({ code: 'journal_in_use' })
      await holder.kill()
      kept += last + 1
      const lines = await withJournal(folder, linesOf)
      const whole = lines.length / 2
      expect(whole).toBeGreaterThanOrEqual(kept + 1)
      expect(lines.at(-2)).toBe(String(Number(lines.at(-2))))
      kept = whole - 1
    }
  })
})

describe('a journal that cannot be used', () => {
  it('has a folder that others can read, or a file', async () => {
    const folder = await folderOfTest()
    await chmod(folder, 0o750)
    await expect(fileJournal(folder)).rejects.toEqual(badJournal(/folder: chmod 700/))
    expect(await modeOf(folder)).toBe(0o750)
    await chmod(folder, 0o700)
    await withJournal(folder, (journal) => journal.append(['a']))
    await chmod(fileOf(folder), 0o640)
    await expect(fileJournal(folder)).rejects.toEqual(badJournal(/file: chmod 600/))
    await chmod(fileOf(folder), 0o600)
    expect(await withJournal(folder, linesOf)).toEqual(['a'])
  })

  it('has a file in the place of the folder, or a folder or a link in that of the file', async () => {
    const folder = await folderOfTest()
    await writeFile(join(folder, 'file'), '')
    await expect(fileJournal(join(folder, 'file'))).rejects.toEqual(
      badJournal(/leads to a file: name another one/),
    )
    await mkdir(fileOf(folder))
    await expect(fileJournal(folder)).rejects.toEqual(badJournal(/EISDIR/))
    await rename(fileOf(folder), join(folder, 'elsewhere'))
    await symlink('/etc/passwd', fileOf(folder))
    await expect(fileJournal(folder)).rejects.toEqual(badJournal(/ELOOP/))
  })

  it('does not write through a symbolic link that has the name of its new file', async () => {
    const folder = await folderOfTest()
    const other = join(await folderOfTest(), 'other')
    await writeFile(other, 'what somebody else has written')
    await symlink(other, `${fileOf(folder)}.new`)
    await expect(fileJournal(folder)).rejects.toEqual(badJournal(/cannot be opened \(ELOOP\)/))
    expect(await readFile(other, 'utf8')).toBe('what somebody else has written')
  })

  it.runIf(process.getuid?.() === 0)('is that of another user', async () => {
    const folder = await folderOfTest()
    await run('chown', ['12345', folder])
    await expect(fileJournal(folder)).rejects.toEqual(badJournal(/another user/))
  })

  it.each([
    ['empty', '', /not the journal/],
    ['foreign', '{"id":1}\n{"id":2}\n', /not the journal/],
    ['of a newer format', '{"journal":"express-service-auth/migration","version":4}\n', /newer/],
    [
      'of the earlier format',
      '{"journal":"express-service-auth/migration","version":1}\n{"unit":"000000',
      /earlier version of this package: finish its migration with that version/,
    ],
    ['cut in its first line', '{"journal":"express-service-auth/migra', /not the journal/],
  ])('is %s, and is left as it is', async (_, text, message) => {
    const folder = await folderOfTest()
    await writeFile(fileOf(folder), text, { mode: 0o600 })
    await expect(fileJournal(folder)).rejects.toEqual(badJournal(message, 1))
    expect(await readFile(fileOf(folder), 'utf8')).toBe(text)
  })

  it('lacks a line, has one twice, or two in the wrong order', async () => {
    const folder = await folderOfTest()
    await filesAfter(folder, [['a'], ['b'], ['c']])
    const [header, a, b, c] = (await readFile(fileOf(folder), 'utf8')).split('\n')
    const refused = (lines: (string | undefined)[], line: number) =>
      expect(recovered(folder, Buffer.from(`${lines.join('\n')}\n`))).rejects.toEqual(
        badJournal(/damaged/, line),
      )
    await refused([header, b, c], 2)
    await refused([header, a, c], 3)
    await refused([header, a, b, b, c], 4)
    await refused([header, b, a, c], 2)
    await refused([header, a, '', b, c], 3)
  })

  it('is damaged while it is open', async () => {
    const folder = await folderOfTest()
    await withJournal(folder, async (journal) => {
      await journal.append(['a'])
      await journal.append(['b'])
      const text = await readFile(fileOf(folder), 'utf8')
      await writeFile(fileOf(folder), text.replace('"b"', '"x"'))
      await expect(linesOf(journal)).rejects.toEqual(badJournal(/damaged/, 3))
      await truncate(fileOf(folder), text.length - 10)
      await expect(linesOf(journal)).rejects.toEqual(badJournal(/damaged/, 3))
    })
  })

  it('has a disk without room', async () => {
    const folder = await folderOfTest()
    const program = await compile(FILLER)
    // To the process, a limit of its files is a full disk.
    const limited = ['-c', 'ulimit -f 16; exec "$@"', 'sh', process.execPath]
    const { stdout } = await run('sh', [...limited, program, folder])
    const said = JSON.parse(stdout)
    expect(said.kept).toBeGreaterThan(1)
    expect(said.lines).toBe(said.kept)
    expect(said.first).toBe('bad_journal: the journal cannot be written (EFBIG)')
    expect(said.second).toBe(said.first)
    expect(said.reopened).toBe(said.kept)
  })
})
