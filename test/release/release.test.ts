import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'

const RELEASE = fileURLToPath(new URL('../../scripts/release.mjs', import.meta.url))
const MANIFEST = { name: 'a-package', version: '0.2.0', repository: 'someone/a-package' }
const CHANGELOG = '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n'

let folder: string
let project: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'release-'))
  project = join(folder, 'project')
  await mkdir(project)
  await run('git', 'init', '--quiet', '--bare', '../remote')
  await run('git', 'init', '--quiet')
  await run('git', 'remote', 'add', 'origin', '../remote')
  await commit({
    'package.json': JSON.stringify(MANIFEST),
    'package-lock.json': JSON.stringify({ version: '0.2.0' }),
    'CHANGELOG.md': CHANGELOG,
  })
})

afterEach(() => rm(folder, { recursive: true }))

const run = (program: string, ...args: readonly string[]) =>
  promisify(execFile)(program, args, { cwd: project })

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(project, name), text)
}

async function commit(files: Readonly<Record<string, string>>): Promise<void> {
  await write(files)
  await run('git', 'add', '--all')
  const person = ['-c', 'user.name=a', '-c', 'user.email=a@localhost']
  await run('git', ...person, 'commit', '--quiet', '--message', 'Change')
}

const release = (...options: readonly string[]) => run(process.execPath, RELEASE, ...options)

const pushedTags = async (): Promise<string> =>
  (await run('git', '--git-dir', '../remote', 'tag')).stdout.trim()

it('pushes the tag of the version', async () => {
  expect((await release()).stdout).toBe('git tag v0.2.0\ngit push origin v0.2.0\n')
  expect(await pushedTags()).toBe('v0.2.0')
})

it('changes nothing in a dry run', async () => {
  expect((await release('--dry-run')).stdout).toBe('git tag v0.2.0\ngit push origin v0.2.0\n')
  expect((await run('git', 'tag')).stdout).toBe('')
})

it.each([
  [
    'without a repository',
    { 'package.json': '{"version":"0.2.0"}' },
    'package.json has no repository',
  ],
  [
    'without a changelog entry',
    { 'CHANGELOG.md': '## [Unreleased]\n' },
    'CHANGELOG.md has no entry',
  ],
  [
    'with another version in the lock',
    { 'package-lock.json': '{}' },
    'package-lock.json has another',
  ],
])('refuses %s', async (_what, files, message) => {
  await commit(files)
  await expect(release()).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(message),
  })
  expect(await pushedTags()).toBe('')
})

it('refuses with a dirty tree', async () => {
  await write({ 'new.txt': '' })
  const stderr = expect.stringContaining('There are changes without a commit')
  await expect(release('--dry-run')).rejects.toMatchObject({ code: 1, stderr })
})

it('refuses a version that has a tag', async () => {
  await run('git', 'tag', 'v0.2.0')
  const stderr = 'The tag v0.2.0 exists: set the next version.\n'
  await expect(release()).rejects.toMatchObject({ code: 1, stderr })
})

it('refuses an unknown option', async () => {
  await expect(release('--dryrun')).rejects.toMatchObject({ code: 2 })
  expect(await pushedTags()).toBe('')
})
