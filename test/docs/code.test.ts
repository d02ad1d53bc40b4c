import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { placeCode, ROOT, readDocument } from './blocks.js'
import { faultOf, type Manifest } from './command-faults.js'
import { docCommentsIn } from './doc-comments.js'
import { allDocuments } from './documents.js'
import { blocksOf, codeBlocks, languagesOf } from './markdown.js'
import { callsOf } from './shell.js'

const documents = await Promise.all(
  (await allDocuments()).map(async (path) => ({ path, text: await readDocument(path) })),
)
const sources = await readdir(`${ROOT}src`, { recursive: true })
const comments = await Promise.all(
  sources
    .filter((path) => path.endsWith('.ts'))
    .map(async (path) => {
      const text = docCommentsIn(await readFile(`${ROOT}src/${path}`, 'utf8'))
      return { path: `src/${path}`, text }
    }),
)
const all = [...documents, ...comments]

/** The documents with blocks of a language. */
const documentsWith = (language: string): readonly string[] =>
  all.filter(({ text }) => languagesOf(text).includes(language)).map(({ path }) => path)

describe('the code in documents and doc comments', () => {
  it('is of languages that a test knows', () => {
    // Those without a language are drawings; `http` is what a test of its page compares.
    const known = ['', 'console', 'http', 'json', 'nginx', 'sh', 'sql', 'text', 'ts', 'yaml']
    const others = all.filter(({ text }) => languagesOf(text).some((one) => !known.includes(one)))
    expect(others.map(({ path }) => path)).toEqual([])
  })

  it('compiles, each block of TypeScript as it stands', async () => {
    const placed = await placeCode(
      'all',
      all.flatMap(({ text }) => codeBlocks(text)),
    )
    expect(placed.blocks.length).toBeGreaterThan(10)
    const tsc = `${ROOT}node_modules/.bin/tsc`
    const compiled = await promisify(execFile)(tsc, ['-p', 'test/docs']).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    )
    await placed.remove()
    expect(compiled.stdout).toBe('')
  }, 180_000)

  it('is run, all of SQL, of YAML and of a terminal', () => {
    // By operations-sql.test.ts.
    expect(documentsWith('sql')).toEqual(['docs/operations.md'])
    // By openapi.test.ts.
    expect(documentsWith('yaml')).toEqual(['docs/openapi.md'])
    // By migration-run-book.test.ts and operations.test.ts.
    expect(documentsWith('console')).toEqual(['docs/migration.md', 'docs/operations.md'])
  })

  it('is JSON where it says so, a block or each line of it', () => {
    const isJson = (text: string): boolean => {
      try {
        JSON.parse(text)
        return true
      } catch {
        return false
      }
    }
    const broken = all
      .flatMap(({ text }) => blocksOf('json', text))
      .filter((block) => !isJson(block) && !block.trim().split('\n').every(isJson))
    expect(broken).toEqual([])
  })
})

/** What a command line calls, in a block or in a sentence; `$M` is what the migration's pages make of it. */
const scripts = all.flatMap(({ path, text }) => [
  ...blocksOf('sh', text).map((script) => ({ path, script })),
  ...[...text.matchAll(/(?<!`)`((?:npx service-auth|service-auth|npm) [^`]+)`(?!`)/g)].map(
    ([, line = '']) => ({ path, script: `M='--journal journal'\n${line.replaceAll('\n', ' ')}` }),
  ),
])

describe('the commands in documents', () => {
  it('exist, with their options', async () => {
    expect(scripts.length).toBeGreaterThan(20)
    const manifest: Manifest = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'))
    const faults = await Promise.all(
      scripts.map(async ({ path, script }) => {
        const calls = await callsOf(script)
        return calls.flatMap((call) => {
          const fault = faultOf(call, manifest)
          return fault === undefined ? [] : [`${path}: ${call.join(' ')}: ${fault}`]
        })
      }),
    )
    expect(faults.flat()).toEqual([])
  })

  it.each([
    ['npm run no-such-script', 'there is no script no-such-script'],
    ['service-auth no-such-command', 'there is no command no-such-command'],
    ['npx service-auth doctor --no-such-option', 'unknown option'],
    ['service-auth migrate no-such-step', 'migrate has no step no-such-step'],
    [
      'psql -f node_modules/express-service-auth/dist/gone.sql',
      'the package exports no node_modules/express-service-auth/dist/gone.sql',
    ],
  ])('«%s» is a fault', async (script, fault) => {
    const [call = []] = await callsOf(script)
    expect(faultOf(call, { scripts: {}, exports: {} })).toBe(fault)
  })
})
