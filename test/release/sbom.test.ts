import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

interface Component {
  readonly name: string
  readonly version: string
  readonly hashes: readonly unknown[]
}

it('lists in the SBOM what users install, and nothing else', async () => {
  const { stdout } = await promisify(execFile)('npm', ['run', '--silent', 'sbom'], { cwd: ROOT })
  const { metadata, components } = JSON.parse(stdout)
  const { name, version, dependencies } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'))
  expect([metadata.component.name, metadata.component.version]).toEqual([name, version])
  const names = (components as readonly Component[]).map((one) => one.name)
  expect(names.sort()).toEqual(Object.keys(dependencies).sort())
  expect((components as readonly Component[]).filter(({ hashes }) => hashes.length === 0)).toEqual(
    [],
  )
})
