import { readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, inject, it } from 'vitest'

const MAX_PACKED_BYTES = 320_000
const MAX_FILES = 80

const packed = inject('packed')

describe('the tarball', () => {
  it('holds the licence, the readme and the manifest', () => {
    const beside = packed.files.filter((path) => !path.startsWith('dist/'))
    expect(beside).toEqual(['LICENSE', 'README.md', 'package.json'])
  })

  it('holds nothing but compiled code and declarations in dist', () => {
    const compiled = packed.files.filter((path) => path.startsWith('dist/'))
    expect(compiled.filter((path) => !/\.(js|d\.ts)$/.test(path))).toEqual([
      'dist/stores/postgres/schema.sql',
    ])
    expect(compiled.filter((path) => /test\.|\/test\/|example|bench/.test(path))).toEqual([])
  })

  it('holds every file that the manifest names', async () => {
    const manifest = JSON.parse(await readFile(join(packed.folder, 'package.json'), 'utf8'))
    const targets = [...Object.values(manifest.exports), ...Object.values(manifest.bin)]
    const named = (targets as (string | Record<string, string>)[])
      .flatMap((target) => (typeof target === 'string' ? [target] : Object.values(target)))
      .map((path) => path.replace('./', ''))
    expect(named.filter((path) => !packed.files.includes(path))).toEqual([])
  })

  it('points to no source map that it does not hold', async () => {
    const missing: string[] = []
    for (const path of packed.files.filter((name) => name.startsWith('dist/'))) {
      const text = await readFile(join(packed.folder, path), 'utf8')
      const map = /\/\/# sourceMappingURL=(.+)/.exec(text)?.[1]
      if (map && !packed.files.includes(join(dirname(path), map))) missing.push(path)
    }
    expect(missing).toEqual([])
  })

  it('stays small', async () => {
    expect((await stat(packed.tarball)).size).toBeLessThanOrEqual(MAX_PACKED_BYTES)
    expect(packed.files.length).toBeLessThanOrEqual(MAX_FILES)
  })
})
