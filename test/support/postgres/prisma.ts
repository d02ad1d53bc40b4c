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

/** The part of the generated client that tests use; typed here, so that tests compile without the client. */
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

/** Opens a Prisma client with Prisma's adapter for pg. */
export async function openPrisma(
  connectionString: string,
  max: number,
  config: PoolConfig = {},
): Promise<TestPrisma> {
  const folder = await generatedPrisma()
  const { PrismaClient } = await import(join(folder, 'client.mjs'))
  // Without it, an error that a pg client emits before Prisma listens would end the process.
  const onConnect = (client: ClientBase) => void client.on('error', () => {})
  const prisma = new PrismaClient({
    adapter: new PrismaPg({ connectionString, max, onConnect, ...config }),
  })
  // Loads the query compiler, which takes a busy machine longer than a test waits for a connection.
  await prisma.$connect()
  return prisma
}

/** Returns a folder with the generated `client.mjs` and, in `client`, its TypeScript; makes it if it is missing. */
export async function generatedPrisma(): Promise<string> {
  const { version } = require('prisma/package.json')
  const digest = createHash('sha256').update(`${version}${SCHEMA}`).digest('hex').slice(0, 16)
  const folder = join(CACHE, `prisma-${digest}`)
  if (!existsSync(folder)) await generate(folder)
  return folder
}

/** Generates in a temporary folder first, because several test files may do so at once. */
async function generate(folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const unfinished = await mkdtemp(`${folder}.`)
  const schema = join(unfinished, 'schema.prisma')
  await writeFile(schema, SCHEMA)
  const command = join(dirname(require.resolve('prisma/package.json')), 'build', 'index.js')
  await run(process.execPath, [command, 'generate', '--schema', schema], {
    cwd: unfinished,
    // If a schema engine is named, Prisma does not download one. `generate` does not call it.
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
