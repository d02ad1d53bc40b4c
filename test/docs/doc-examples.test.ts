import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { migration } from 'express-service-auth/postgres'
import { afterAll, describe, expect, it } from 'vitest'
import { linesOf, userNamed } from '../cli/migrate/migrate-kit.js'
import { startStandInCore } from '../support/core/stand-in-core.js'
import { createDatabase, sharedPostgres } from '../support/postgres/postgres-database.js'
import { openPrisma } from '../support/postgres/prisma.js'
import { compile } from '../support/process/compile.js'
import { startRedis } from '../support/redis/redis.js'
import { ROOT } from './documents.js'
import { codeBlocks, docCommentsIn } from './markdown.js'

/** An exported function and the example in its doc comment. */
interface Example {
  readonly name: string
  readonly code: string | undefined
}

const read = (path: string): Promise<string> => readFile(`${ROOT}src/${path}`, 'utf8')

async function examplesOf(folder: string): Promise<readonly Example[]> {
  const index = await read(`${folder}index.ts`)
  const clauses = [...index.matchAll(/^export \{(.*?)\} from '\.\/(.*?)\.js'/gms)]
  const examples = clauses.map(async ([, clause = '', path]) => {
    const source = await read(`${folder}${path}.ts`)
    return clause
      .split(',')
      .map((name) => name.trim())
      .filter((name) => /^[a-z]\w+$/.test(name))
      .map((name) => ({ name, code: exampleOf(name, source) }))
  })
  return (await Promise.all(examples)).flat()
}

/** Of the first overload that has one. */
function exampleOf(name: string, source: string): string | undefined {
  const declaration = new RegExp(`^export (?:async )?(?:function|const) ${name}\\b`, 'gm')
  const comments = [...source.matchAll(declaration)].map(({ index }) =>
    source.slice(source.lastIndexOf('/**', index), index),
  )
  return comments.flatMap((comment) => codeBlocks(docCommentsIn(comment)))[0]?.code
}

const STORES = ['stores/redis/', 'stores/postgres/']
const FOLDERS = ['', 'client/', ...STORES, 'telemetry/otel/', 'migration/', 'testing/']
const examples = (await Promise.all(FOLDERS.map(examplesOf))).flat()

const postgres = await sharedPostgres()
const [core, redis] = await Promise.all([startStandInCore(), startRedis()])
const folder = await mkdtemp(join(tmpdir(), 'examples-'))
afterAll(() => Promise.all([core.close(), redis.stop(), rm(folder, { recursive: true })]))

/** The address of a new database with the tables. */
async function databaseUrl(): Promise<string> {
  const { name, url } = await createDatabase(postgres)
  await postgres.query(migration(), [], name)
  return url
}

/** Compiles an example in a folder of its own. */
async function place({ name, code = '' }: Example) {
  const cwd = await mkdtemp(join(folder, 'run-'))
  await writeFile(join(cwd, `${name}.ts`), code)
  const program = pathToFileURL(await compile(pathToFileURL(join(cwd, `${name}.ts`)))).href
  return { cwd, program }
}

/** What a program prints until its last line has run. */
async function run(example: Example): Promise<string> {
  const { cwd, program } = await place(example)
  await writeFile(join(cwd, 'users.ndjson'), linesOf(userNamed('bob')), { mode: 0o600 })
  const servers = { CORE_URL: core.url, CORE_API_KEY: core.apiKey, REDIS_URL: redis.url }
  const env = { ...process.env, ...servers, DATABASE_URL: await databaseUrl() }
  const args = ['--input-type=module', '-e', `await import('${program}'); process.exit()`]
  return (await promisify(execFile)(process.execPath, args, { cwd, env })).stdout
}

/** The comments behind `console.log(…)`. */
const promised = (code: string): readonly string[] =>
  [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, text = '']) => text)

describe.concurrent('the example of', () => {
  it.each(examples)('$name runs and prints what it says', async (example) => {
    expect(example.code, 'its doc comment has an example').toContain(`${example.name}(`)
    const printed = await run(example)
    const lines = promised(example.code ?? '')
    if (lines.length > 0) expect(printed.trimEnd().split('\n')).toEqual(lines)
  })
})

it('opens a store on a client of Prisma', async () => {
  const example = examples.find(({ name }) => name === 'fromPrisma')
  if (example === undefined) throw new Error('no example of fromPrisma')
  const { program } = await place(example)
  const prisma = await openPrisma(await databaseUrl(), 2)
  const { openStore } = await import(program)
  const store = await openStore(prisma)
  expect(await store.check()).toEqual([])
  await prisma.$disconnect()
  store.close()
})
