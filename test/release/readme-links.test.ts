import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SCRIPT = join(ROOT, 'scripts/readme-links.mjs')

let project: string

beforeEach(async () => {
  project = await mkdtemp(join(tmpdir(), 'readme-links-'))
})
afterEach(() => rm(project, { recursive: true }))

const run = (program: string, ...args: readonly string[]) =>
  promisify(execFile)(program, args, { cwd: project })

const readme = (): Promise<string> => readFile(join(project, 'README.md'), 'utf8')

/** Makes a package with the README and with the scripts of this one. */
async function packageOf(text: string, repository?: unknown): Promise<void> {
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const [, prepack] = scripts.prepack.split(' && ')
  const ofPacking = { prepack, postpack: scripts.postpack }
  await cp(join(ROOT, 'scripts'), join(project, 'scripts'), { recursive: true })
  const named = { name: 'a', version: '1.2.3', type: 'module', files: [] }
  const manifest = { ...named, scripts: ofPacking, repository }
  await writeFile(join(project, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(project, 'README.md'), text)
}

/** Resolves with the README as it is packed. */
async function packedReadme(text: string, repository?: unknown): Promise<string> {
  await packageOf(text, repository)
  await run(process.execPath, SCRIPT, 'absolute')
  const packed = await readme()
  await run(process.execPath, SCRIPT, 'relative')
  return packed
}

const TEXT = `# A
[cli](docs/cli.md#deny), [licence](LICENSE), [below](#b), [npm](https://npmjs.com), [mail](mailto:a@b)
\`\`\`ts
handlers[name](request)
\`\`\`
[![chart](docs/chart.svg)](docs/charts.md)
`
const AT = 'https://github.com/someone/a.b/blob/v1.2.3/'
const ABSOLUTE = TEXT.replace('docs/cli', `${AT}docs/cli`)
  .replace('LICENSE', `${AT}LICENSE`)
  .replace('docs/chart.', `${AT}docs/chart.`)
  .replace('docs/charts', `${AT}docs/charts`)

it('is run by npm pack', async () => {
  await packageOf(TEXT, 'someone/a.b')
  await run('npm', 'pack', '--silent')
  const packed = await run('tar', '-xzOf', 'a-1.2.3.tgz', 'package/README.md')
  expect(packed.stdout).toBe(ABSOLUTE)
  expect(await readme()).toBe(TEXT)
})

it.each([
  'someone/a.b',
  'github:someone/a.b',
  'https://github.com/someone/a.b',
  { type: 'git', url: 'git+https://github.com/someone/a.b.git' },
])('packs links to the repository %j, and restores the file', async (repository) => {
  expect(await packedReadme(TEXT, repository)).toBe(ABSOLUTE)
  expect(await readme()).toBe(TEXT)
})

it('packs the links as they are without a repository', async () => {
  expect(await packedReadme(TEXT)).toBe(TEXT)
})

it('leaves no relative link in the README of this package', async () => {
  const text = await readFile(join(ROOT, 'README.md'), 'utf8')
  const packed = await packedReadme(text, 'someone/a.b')
  const withoutCode = packed.replaceAll(/^```[\s\S]*?^```$/gm, '')
  const targets = [...withoutCode.matchAll(/\]\(([^)]*)\)/g)].map(([, target = '']) => target)
  expect(targets.length).toBeGreaterThan(20)
  expect(targets.filter((target) => !/^(https:\/\/|#)/.test(target))).toEqual([])
  expect(await readme()).toBe(text)
})

it('restores the file also after a pack that was interrupted', async () => {
  await packedReadme(TEXT, 'someone/a.b')
  await run(process.execPath, SCRIPT, 'absolute')
  await run(process.execPath, SCRIPT, 'absolute')
  expect(await readme()).toBe(ABSOLUTE)
  await run(process.execPath, SCRIPT, 'relative')
  expect(await readme()).toBe(TEXT)
})
