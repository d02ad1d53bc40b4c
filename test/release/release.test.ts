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
    'package.json has no repository such as "github:owner/name"',
  ],
  [
    'with a repository elsewhere',
    { 'package.json': '{"version":"0.2.0","repository":"https://a.example/b"}' },
    'package.json has no repository such as "github:owner/name"',
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

const REPORT = 'interface Options {\n    name: string;\n}\n'
const WITH_ADDITION = REPORT.replace('}', '    size?: number;\n}')
const WITH_CHANGE = REPORT.replace('string', 'number')
const EMPTY = ''

/** Runs a release of the version `next` after the version `last`, with another API report. */
async function releaseAfter(last: string, next: string, report: string) {
  await mkdir(join(project, 'api'))
  await commit({ 'api/index.api.md': REPORT })
  await run('git', 'tag', `v${last}`)
  await commit({
    'package.json': JSON.stringify({ ...MANIFEST, version: next }),
    'package-lock.json': JSON.stringify({ version: next }),
    'CHANGELOG.md': `${CHANGELOG}\n## [${next}] - 2026-12-02\n`,
    'api/index.api.md': report,
  })
  return release('--dry-run')
}

it.each([
  ['0.2.0', '0.2.1', 'no change', REPORT],
  ['0.2.9', '0.3.0', 'an addition', WITH_ADDITION],
  ['0.2.9', '0.10.0', 'a change', WITH_CHANGE],
  ['0.2.9', '0.3.0', 'a removal', EMPTY],
  ['1.0.0', '1.1.0', 'an addition', WITH_ADDITION],
  ['1.9.0', '2.0.0', 'a change', WITH_CHANGE],
])('allows after %s the version %s with %s of the declarations', async (last, next, _, report) => {
  const { stdout } = await releaseAfter(last, next, report)
  expect(stdout).toContain(`git tag v${next}\n`)
})

it.each([
  ['0.2.0', '0.2.1', 'added', 'minor', WITH_ADDITION],
  ['0.2.0', '0.2.1', 'removed or changed', 'minor', WITH_CHANGE],
  ['0.2.0', '0.2.1', 'removed or changed', 'minor', EMPTY],
  ['1.0.0', '1.0.1', 'added', 'minor', WITH_ADDITION],
  ['1.0.0', '1.1.0', 'removed or changed', 'major', WITH_CHANGE],
  ['1.0.0', '1.1.0', 'removed or changed', 'major', EMPTY],
])('refuses after %s the version %s with declarations %s', async (last, next, ...rest) => {
  const [change, needed, report] = rest
  const stderr =
    `Public declarations are ${change} since v${last}: a ${needed} version is needed. ` +
    `See git diff v${last} -- api.\n`
  await expect(releaseAfter(last, next, report)).rejects.toMatchObject({ code: 1, stderr })
})

it('compares with the last release, not with a later tag of another kind', async () => {
  await run('git', 'tag', 'v0.9.0-rc.1')
  await run('git', 'tag', 'latest')
  const { stdout } = await releaseAfter('0.2.0', '0.2.1', REPORT)
  expect(stdout).toContain('git tag v0.2.1\n')
})

it('refuses an unknown option', async () => {
  await expect(release('--dryrun')).rejects.toMatchObject({ code: 2 })
  expect(await pushedTags()).toBe('')
})
