import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { COMMON_OPTIONS, optionNames } from '../../src/cli/frame/arguments.js'
import { STEPS } from '../../src/cli/migrate/migrate-options.js'
import { COMMANDS } from '../../src/cli/run-command.js'
import { placeCode, ROOT, readDocument } from './blocks.js'
import { docCommentsIn } from './doc-comments.js'
import { allDocuments } from './documents.js'
import { blocksOf, codeBlocks, languagesOf } from './markdown.js'

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

/** The lines of a terminal, in blocks and in sentences, each in one line. */
const commandLines = all.flatMap(({ path, text }) => {
  const inSentences = [...text.matchAll(/(?<!`)`((?:npx |npm |service-auth )[^`]+)`(?!`)/g)]
  const inBlocks = [...blocksOf('sh', text), ...blocksOf('console', text)]
  const lines = inBlocks.flatMap((block) => block.replaceAll('\\\n', ' ').split('\n'))
  return [...lines, ...inSentences.map(([, line = '']) => line.replaceAll('\n', ' '))].map(
    (line) => ({
      path,
      line,
    }),
  )
})

/** Of a call of `service-auth`, the words that it does not know. */
function unknownWords(call: string): readonly string[] {
  const [name = '', ...words] = call.split(' ').filter((word) => word !== '')
  const command = COMMANDS.find((one) => one.name === name)
  // The pages say `COMMAND` for any.
  if (command === undefined) return name === 'COMMAND' || name.startsWith('-') ? [] : [name]
  const options = Object.values({ ...command.options, COMMON_OPTIONS }).flatMap(optionNames)
  const unknownOptions = words.flatMap((word) => {
    const option = /^\[?--([a-z-]+)/.exec(word)?.[1]
    return option === undefined || options.includes(option) ? [] : [word]
  })
  const [step = '-'] = words
  const isStep = name !== 'migrate' || /^[-$]/.test(step) || STEPS.some((one) => one === step)
  return isStep ? unknownOptions : [step, ...unknownOptions]
}

describe('the commands in documents', () => {
  it('of service-auth exist, with their steps and options', () => {
    const calls = commandLines.flatMap(({ path, line }) =>
      [...line.matchAll(/(?<![\w./-])service-auth ([^|;&>]+)/g)].map(([, call = '']) => ({
        path,
        call,
      })),
    )
    expect(calls.length).toBeGreaterThan(20)
    expect(calls.filter(({ call }) => unknownWords(call).length > 0)).toEqual([])
    expect(unknownWords('doctor --no-such-option')).toEqual(['--no-such-option'])
    expect(unknownWords('no-such-command')).toEqual(['no-such-command'])
    expect(unknownWords('migrate no-such-step')).toEqual(['no-such-step'])
  })

  it('of npm are scripts, and files of the package are exported', async () => {
    const manifest = await readDocument('package.json')
    const { scripts, exports } = JSON.parse(manifest)
    const lines = commandLines.map(({ line }) => line).join('\n')
    const run = [...lines.matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g)].map(
      ([, name = '']) => name,
    )
    expect(run.length).toBeGreaterThan(5)
    expect(run.filter((name) => !Object.hasOwn(scripts, name))).toEqual([])
    const files = [...lines.matchAll(/node_modules\/express-service-auth(\/[\w./-]+)/g)]
    expect(files.length).toBeGreaterThan(0)
    const exported = Object.values(exports)
    expect(files.map(([, file]) => `.${file}`).filter((file) => !exported.includes(file))).toEqual(
      [],
    )
  })
})
