import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { readMentionedPackages, readPublicNames } from './declarations.js'

const packed = inject('packed')
let entryPoints: Map<string, string>

beforeAll(async () => {
  const manifest = JSON.parse(await readFile(join(packed.folder, 'package.json'), 'utf8'))
  const exports = Object.entries<{ types?: string }>(manifest.exports)
  entryPoints = new Map(
    exports.flatMap(([name, { types }]) => (types ? [[name, join(packed.folder, types)]] : [])),
  )
})

function declarationsOf(entryPoint: string): string {
  const file = entryPoints.get(entryPoint)
  if (file) return file
  throw new Error(`package.json exports no ${entryPoint}`)
}

describe('the published declarations', () => {
  it('explain every public name in a doc comment', async () => {
    const bare: string[] = []
    for (const [entryPoint, file] of entryPoints) {
      const names = await readPublicNames(file)
      expect(names.length, entryPoint).toBeGreaterThan(0)
      bare.push(...names.filter((one) => !one.documented).map((one) => `${entryPoint} ${one.name}`))
    }
    expect(bare).toEqual([])
  })

  it.each([
    ['.', ['express', 'lru-cache', 'zod']],
    ['./redis', ['express', 'zod']],
    ['./postgres', ['express', 'zod']],
    ['./client', ['zod']],
    ['./otel', ['@opentelemetry/api']],
  ])('of the entry point %s need no package that its users may lack', async (name, allowed) => {
    const packages = await readMentionedPackages(declarationsOf(name))
    expect([...packages].filter((one) => !/^node:/.test(one) && !allowed.includes(one))).toEqual([])
  })
})
