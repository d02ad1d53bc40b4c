import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, inject, it } from 'vitest'

const packed = inject('packed')
const MODULES = packed.files.filter((path) => path.endsWith('.js'))

const read = (path: string): Promise<string> => readFile(join(packed.folder, path), 'utf8')

/** The packages and Node's modules that are loaded with a file. */
async function packagesOf(path: string, seen: Set<string> = new Set()): Promise<Set<string>> {
  const packages = new Set<string>()
  if (seen.has(path)) return packages
  seen.add(path)
  for (const [, source = ''] of (await read(path)).matchAll(
    /^(?:import|export) (?:.+ from )?"(.+)";$/gm,
  )) {
    if (!source.startsWith('.')) packages.add(source)
    else {
      for (const name of await packagesOf(join(dirname(path), source), seen)) packages.add(name)
    }
  }
  return packages
}

const VERIFYING = ['jose/errors', 'jose/jws/compact/verify']
const SIGNING = ['jose/jws/compact/sign', 'jose/key/export', 'jose/key/generate/keypair']

const USED = [
  {
    path: 'index.js',
    packages: [...VERIFYING, 'jose/jwk/thumbprint', 'jose/key/import', 'lru-cache', 'zod'].sort(),
  },
  { path: 'stores/redis/index.js', packages: ['zod'] },
  { path: 'stores/postgres/index.js', packages: ['zod'] },
  { path: 'telemetry/otel/index.js', packages: ['@opentelemetry/api', 'zod'] },
  { path: 'client/index.js', packages: [...SIGNING, 'jose/jwk/thumbprint', 'zod'].sort() },
  { path: 'migration/index.js', packages: ['express', 'google-libphonenumber', 'zod'] },
  { path: 'testing/index.js', packages: ['zod'] },
]

describe('the bundle', () => {
  it.each(USED)('loads with $path the packages that it uses and no others', async (entry) => {
    const packages = [...(await packagesOf(`dist/${entry.path}`))]
    expect(packages.filter((name) => !name.startsWith('node:')).sort()).toEqual(entry.packages)
  })

  it('loads Node’s fetch with no entry point', async () => {
    for (const { path } of USED) {
      expect([...(await packagesOf(`dist/${path}`))], path).not.toContain('node:http')
    }
  })

  it('holds each module of the source once, for all entry points', async () => {
    const texts = await Promise.all(MODULES.map(read))
    const modules = texts.flatMap((text) => text.match(/^\/\/ src\/.+\.ts$/gm) ?? [])
    expect(modules.length).toBeGreaterThan(200)
    expect(modules.filter((name, index) => modules.indexOf(name) !== index)).toEqual([])
  })

  it('keeps the names of functions for stack traces', async () => {
    const { serviceAuth } = await import(pathToFileURL(join(packed.folder, 'dist/index.js')).href)
    const calling = (): unknown => serviceAuth({})
    expect(calling).toThrow(
      expect.objectContaining({
        stack: expect.stringMatching(/at parseOptions .*\n.*at parsePolicy .*\n.*at serviceAuth /),
      }),
    )
  })
})
