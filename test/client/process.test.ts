import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { compile } from '../support/process/compile.js'
import { hangs, hangsUp, type Lie, mints, startLyingCore } from './lying-core.js'

const child = await compile(new URL('./process.child.ts', import.meta.url))
const entry = new URL('../../src/client/index.ts', import.meta.url)

it.concurrent.for<[string, Lie, string]>([
  ['obtained', mints(), 'left\n'],
  ['failed', hangsUp, 'no service token: core_unreachable, UND_ERR_SOCKET\nleft\n'],
  ['under way', hangs, 'left\n'],
  ['waiting for its key', hangs, 'left\n'],
])(
  'a source that is left open does not hold the process open: %s',
  async ([state, lie, told], { onTestFinished }) => {
    const core = await startLyingCore(lie, onTestFinished)
    const command = [child, state, core.url]
    const run = promisify(execFile)(process.execPath, command, { timeout: 30_000 })
    expect(await run).toMatchObject({ stdout: told, stderr: '' })
  },
)

it('the entry point needs neither Express nor ioredis', async () => {
  const packages = await packagesOf(entry)
  expect([...packages].filter((name) => !name.startsWith('node:')).sort()).toEqual([
    ...['jose/jwk/thumbprint', 'jose/jws/compact/sign', 'jose/key/export'],
    ...['jose/key/generate/keypair', 'zod'],
  ])
})

/** The packages that a module imports as a value, directly or through the modules that it imports. */
async function packagesOf(module: URL, seen = new Set<string>()): Promise<Set<string>> {
  const packages = new Set<string>()
  if (seen.has(module.href)) return packages
  seen.add(module.href)
  const text = await readFile(module, 'utf8')
  for (const [, source = ''] of text.matchAll(
    /^(?:import|export|\}) (?!type )[^'\n]*from '([^']+)'$/gm,
  )) {
    if (!source.startsWith('.')) packages.add(source)
    else {
      const next = new URL(source.replace(/\.js$/, '.ts'), module)
      for (const name of await packagesOf(next, seen)) packages.add(name)
    }
  }
  return packages
}
