import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { ROOT } from './pack.js'
import { createProject, type Project } from './project.js'

const VERSIONS = ['5.9.3', '6.0.3', '7.0.2']
const ROW = /^\| (\d\.\d)( and (?:later|earlier))? \| `(\{.+\})` \|$/gm

const page = await readFile(join(ROOT, 'docs/testing.md'), 'utf8')
const settings = [...page.matchAll(ROW)].map(([, named = '', range, options = '']) => ({
  versions: VERSIONS.filter((version) => isWithin(version, named, range)),
  options: JSON.parse(options),
}))

function isWithin(version: string, named: string, range: string | undefined): boolean {
  if (range === undefined) return version.startsWith(`${named}.`)
  const order = Number.parseFloat(version) - Number.parseFloat(named)
  return range === ' and later' ? order >= 0 : order <= 0
}

describe('a CommonJS project', () => {
  let project: Project

  beforeAll(async () => {
    project = await createProject()
    await project.install(inject('packed').tarball, 'express', '@types/express', '@types/node')
    const compilers = VERSIONS.map((version) => `ts-${version}@npm:typescript@${version}`)
    await project.install(
      'ioredis',
      '@opentelemetry/api',
      'google-libphonenumber@3.2.34',
      ...compilers,
    )
  })

  afterAll(() => project?.remove())

  // Of a range, its ends.
  const cases = settings.flatMap(({ versions, options }) =>
    versions
      .filter((_, index) => index === 0 || index === versions.length - 1)
      .map((version) => ({ version, options, text: JSON.stringify(options) })),
  )

  it.each(cases)('compiles with TypeScript $version and $text, and runs', async (one) => {
    await project.compileWith(`ts-${one.version}`, 'commonjs.ts', one.options)
    expect(await project.run('commonjs.js')).toBe(
      'function serviceFetch tokenSource validateUser instrument postgresStore redisStore createTestIssuer\n',
    )
  })

  it('has settings for each version that is supported', () => {
    expect(new Set(cases.map(({ version }) => version))).toEqual(new Set(VERSIONS))
    expect(settings).toHaveLength(5)
  })
})
