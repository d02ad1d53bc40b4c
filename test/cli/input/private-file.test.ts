import { execFileSync } from 'node:child_process'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readFileBytes, readJsonFile, readTextFile } from '../../../src/cli/input/private-file.js'
import { temporaryFile, temporaryFolder } from '../kit.js'

const MEBIBYTE = 1024 * 1024

describe('a file with secrets', () => {
  it('is read when only its owner may read it, through a link too', async () => {
    const path = await temporaryFile('{ "a": 1 }')
    const link = join(await temporaryFolder(), 'link')
    await symlink(path, link)
    await chmod(path, 0o400)
    expect(await readJsonFile('--redis', path, { secrecy: 'secret' })).toEqual({ a: 1 })
    expect(await readJsonFile('--redis', link, { secrecy: 'secret' })).toEqual({ a: 1 })
  })

  it.each([0o640, 0o604, 0o620, 0o602, 0o610, 0o601])('is refused with mode %o', async (mode) => {
    const path = await temporaryFile('{ "a": 1 }', mode)
    await expect(readTextFile('--redis', path, 'secret')).rejects.toMatchObject({
      exitCode: 2,
      code: 'file',
      message: 'other users can read or change the --redis file: run chmod 600 on it',
    })
    expect(await readTextFile('--policy', path, 'public')).toBe('{ "a": 1 }')
  })
})

describe('any file', () => {
  it('must be a regular one: no folder, no device, no FIFO that nobody writes into', async () => {
    const folder = await temporaryFolder()
    const fifo = join(folder, 'fifo')
    execFileSync('mkfifo', ['-m', '600', fifo])
    await mkdir(join(folder, 'inner'), { mode: 0o700 })
    for (const path of [fifo, join(folder, 'inner'), '/dev/null', '/dev/zero']) {
      const read = readTextFile('--redis', path, 'secret')
      await expect(read).rejects.toThrow('--redis must name a regular file')
    }
  })

  it('is at most 1 MiB', async () => {
    const path = await temporaryFile(Buffer.alloc(MEBIBYTE, ' '))
    expect(await readFileBytes('--body', path, 'public')).toHaveLength(MEBIBYTE)
    await writeFile(path, Buffer.alloc(MEBIBYTE + 1, ' '))
    const read = readFileBytes('--body', path, 'public')
    await expect(read).rejects.toThrow('the --body file is larger than 1 MiB')
  })

  it('of text is in UTF-8', async () => {
    const path = await temporaryFile(Buffer.from([0x22, 0xff, 0x22]))
    await expect(readTextFile('--policy', path, 'public')).rejects.toThrow('not valid UTF-8')
  })

  const advice = 'look for a trailing comma, a comment or single quotes'
  it.each([
    ['{ "password": hunter2 }', `is not JSON: ${advice}`],
    ['\n', 'is empty'],
  ])('of JSON is not quoted when it is none: %j', async (text, fault) => {
    const path = await temporaryFile(text)
    await expect(readJsonFile('--redis', path, { secrecy: 'secret' })).rejects.toMatchObject({
      exitCode: 2,
      code: 'file',
      message: `the --redis file ${fault}`,
    })
  })
})
