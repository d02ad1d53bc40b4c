import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { PrismaPg } from '@prisma/adapter-pg'
import { build } from 'esbuild'
import type { ClientBase, PoolConfig } from 'pg'
import { CACHE } from '../process/cache.js'

const SCHEMA = `
generator client {
  provider            = "prisma-client"
  output              = "./client"
  moduleFormat        = "esm"
  importFileExtension = "js"
}
datasource db {
  provider = "postgresql"
}
model Payment {
  id   String  @id
  note String?
  @@map("payment")
}
`

type Values = readonly unknown[]

/** What the tests use of the client that Prisma generates from the schema above; so typed, they compile without it. */
export interface TestPrisma extends TestPrismaTransaction {
  $connect(): Promise<void>
  $disconnect(): Promise<void>
  $transaction(queries: never[]): Promise<unknown>
  $transaction<R>(
    run: (tx: TestPrismaTransaction) => Promise<R>,
    limits?: { maxWait?: number; timeout?: number },
  ): Promise<R>
}

export interface TestPrismaTransaction {
  $queryRawUnsafe(text: string, ...values: Values): PromiseLike<unknown>
  $executeRawUnsafe(text: string, ...values: Values): PromiseLike<number>
  readonly payment: {
    create(query: { data: { id: string; note?: string | null } }): PromiseLike<{ id: string }>
    findMany(query?: object): PromiseLike<{ id: string; note: string | null }[]>
  }
}

const run = promisify(execFile)
const require = createRequire(import.meta.url)

/** A client of Prisma with its adapter for pg. */
export async function openPrisma(
  connectionString: string,
  max: number,
  config: PoolConfig = {},
): Promise<TestPrisma> {
  const folder = await generatedPrisma()
  const { PrismaClient } = await import(join(folder, 'client.mjs'))
  // Prisma listens to a client only after it may have told of its end.
  const onConnect = (client: ClientBase) => void client.on('error', () => {})
  return new PrismaClient({
    adapter: new PrismaPg({ connectionString, max, onConnect, ...config }),
  })
}

/** The folder of what Prisma generates: `client.mjs`, and in `client` its TypeScript. Made once for good. */
export async function generatedPrisma(): Promise<string> {
  const { version } = require('prisma/package.json')
  const digest = createHash('sha256').update(`${version}${SCHEMA}`).digest('hex').slice(0, 16)
  const folder = join(CACHE, `prisma-${digest}`)
  if (!existsSync(folder)) await generate(folder)
  return folder
}

/** Elsewhere first: several test files may do the same at once. */
async function generate(folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const unfinished = await mkdtemp(`${folder}.`)
  const schema = join(unfinished, 'schema.prisma')
  await writeFile(schema, SCHEMA)
  const command = join(dirname(require.resolve('prisma/package.json')), 'build', 'index.js')
  await run(process.execPath, [command, 'generate', '--schema', schema], {
    cwd: unfinished,
    // Named, the engine is not downloaded; nothing is asked of it.
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
  })
  await build({
    entryPoints: [join(unfinished, 'client', 'client.ts')],
    outfile: join(unfinished, 'client.mjs'),
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    tsconfig: fileURLToPath(new URL('../../../tsconfig.json', import.meta.url)),
  })
  await rename(unfinished, folder).catch(async (error: unknown) => {
    await rm(unfinished, { recursive: true })
    if (!existsSync(folder)) throw error
  })
}
