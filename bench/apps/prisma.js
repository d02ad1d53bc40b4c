import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PrismaPg } from '@prisma/adapter-pg'

/** Removed with the other dependencies, so that another version generates it again. */
const FOLDER = fileURLToPath(new URL('../node_modules/.prisma-client/', import.meta.url))

const SCHEMA = `
generator client {
  provider = "prisma-client-js"
  output   = "./client"
}
datasource db {
  provider = "postgresql"
}
model orders {
  id       BigInt @id @default(autoincrement())
  item     String
  quantity Int
}
`

const require = createRequire(import.meta.url)

/** A client of Prisma with its adapter for pg. */
export async function openPrisma(connectionString, max) {
  const client = join(FOLDER, 'client', 'index.js')
  if (!existsSync(client)) await generate()
  const { PrismaClient } = require(client)
  return new PrismaClient({ adapter: new PrismaPg({ connectionString, max }) })
}

async function generate() {
  await mkdir(FOLDER, { recursive: true })
  const schema = join(FOLDER, 'schema.prisma')
  await writeFile(schema, SCHEMA)
  const command = join(dirname(require.resolve('prisma/package.json')), 'build', 'index.js')
  execFileSync(process.execPath, [command, 'generate', '--schema', schema], {
    cwd: FOLDER,
    stdio: 'ignore',
    // Named, the engine is not downloaded; nothing is asked of it.
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
  })
}
