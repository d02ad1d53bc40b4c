import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FOLDER = `${ROOT}.github/workflows/`
const files = await readdir(FOLDER)

const all = (pattern: RegExp, text: string): string[] =>
  [...text.matchAll(pattern)].map(([, found = '']) => found.trim())

describe.each(files)('the workflow %s', async (file) => {
  const text = await readFile(`${FOLDER}${file}`, 'utf8')

  it('uses each action by a full commit SHA, with its version', () => {
    const actions = all(/\buses:(.*)/g, text)
    expect(actions.length).toBeGreaterThan(0)
    expect(
      actions.filter((one) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(one)),
    ).toEqual([])
  })

  it('may only read, unless a job says otherwise', () => {
    expect(text).toContain('\npermissions:\n  contents: read\n\n')
  })

  it('runs only scripts that package.json has', async () => {
    const { scripts } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'))
    const names = all(/\bnpm run (?:--silent )?([\w:]+)/g, text)
    expect(names.filter((name) => !Object.hasOwn(scripts, name))).toEqual([])
  })
})

it('runs on each change what .ci/run runs', async () => {
  expect(await readFile(`${FOLDER}ci.yml`, 'utf8')).toMatch(/^ +- run: \.ci\/run$/m)
})

it('publishes in a job that installs nothing and runs nothing of the repository', async () => {
  const text = await readFile(`${FOLDER}release.yml`, 'utf8')
  const [build = '', publish = ''] = text.split(/^ {2}publish:$/m)
  expect(build).not.toContain('id-token')
  expect(publish).toContain('id-token: write')
  expect(publish).toContain('npm publish ./*.tgz --provenance')
  expect(publish).not.toMatch(/checkout|npm (?:ci|install|run)/)
})
