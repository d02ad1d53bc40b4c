import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { COMMON_OPTIONS, optionNames } from '../../src/cli/frame/arguments.js'
import { STEPS } from '../../src/cli/migrate/migrate-options.js'
import { COMMANDS } from '../../src/cli/run-command.js'
import { allDocuments, ROOT, readDocument } from './documents.js'
import { blocksOf, codeBlocks, docCommentsIn, languagesOf } from './markdown.js'
import { placeCode } from './programs.js'

const sources = (await readdir(`${ROOT}src`, { recursive: true })).filter((path) =>
  path.endsWith('.ts'),
)
const all = await Promise.all([
  ...(await allDocuments()).map(async (path) => ({ path, text: await readDocument(path) })),
  ...sources.map(async (path) => {
    const text = docCommentsIn(await readFile(`${ROOT}src/${path}`, 'utf8'))
    return { path: `src/${path}`, text }
  }),
])

/** The pages whose blocks of these languages a test runs. */
const RUN: Readonly<Record<string, readonly string[]>> = {
  console: ['docs/migration.md', 'docs/operations.md'],
  nginx: ['docs/bound-tokens.md'],
  sql: ['docs/operations.md'],
  yaml: ['docs/openapi.md'],
}
/** Those without a language are drawings. */
const CHECKED_HERE = ['', 'http', 'json', 'sh', 'text', 'ts']

describe('the code in documents and doc comments', () => {
  it('is of languages that a test knows', () => {
    const unknown = all.flatMap(({ path, text }) =>
      languagesOf(text)
        .filter((language) => !CHECKED_HERE.includes(language) && !RUN[language]?.includes(path))
        .map((language) => `${path}: ${language}`),
    )
    expect(unknown).toEqual([])
  })

  it('compiles, each block of TypeScript as it stands', async () => {
    const blocks = all.flatMap(({ text }) => codeBlocks(text))
    expect(blocks.length).toBeGreaterThan(10)
    const placed = await placeCode('all', blocks)
    const tsc = `${ROOT}node_modules/.bin/tsc`
    const compiled = await promisify(execFile)(tsc, ['-p', 'test/docs']).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    )
    await placed.remove()
    expect(compiled.stdout).toBe('')
  }, 180_000)

  it('is JSON where it says so, a block or each line of it', () => {
    for (const block of all.flatMap(({ text }) => blocksOf('json', text))) {
      const values = block.startsWith('{\n') ? [block] : block.trim().split('\n')
      for (const value of values) expect(() => JSON.parse(value), value).not.toThrow()
    }
  })
})

/** The lines of a terminal, in blocks and in sentences, each in one line. */
const commandLines = all.flatMap(({ path, text }) => {
  const inSentences = [...text.matchAll(/(?<!`)`((?:npx |npm |service-auth )[^`]+)`(?!`)/g)]
  const inBlocks = [...blocksOf('sh', text), ...blocksOf('console', text)]
  const lines = inBlocks.flatMap((block) => block.replaceAll('\\\n', ' ').split('\n'))
  const sentences = inSentences.map(([, line = '']) => line.replaceAll('\n', ' '))
  return [...lines, ...sentences].map((line) => ({ path, line }))
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
    const { scripts, exports } = JSON.parse(await readDocument('package.json'))
    const lines = commandLines.map(({ line }) => line).join('\n')
    const run = [...lines.matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g)].map(([, name]) => name)
    expect(run.length).toBeGreaterThan(5)
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(run))
    const files = [...lines.matchAll(/node_modules\/express-service-auth(\/[\w./-]+)/g)]
    expect(files.length).toBeGreaterThan(0)
    const exported = files.map(([, file]) => `.${file}`)
    expect(Object.values(exports)).toEqual(expect.arrayContaining(exported))
  })
})
