import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Kysely, PostgresDialect } from 'kysely'
import { Client, Pool } from 'pg'
import { DataSource } from 'typeorm'
import { describe, expect, it } from 'vitest'
import { fromKysely } from '../../../../src/stores/postgres/adapters/kysely.js'
import { fromPg } from '../../../../src/stores/postgres/adapters/pg.js'
import { fromPostgresJs } from '../../../../src/stores/postgres/adapters/postgres-js.js'
import { fromPrisma } from '../../../../src/stores/postgres/adapters/prisma.js'
import { fromTypeOrm } from '../../../../src/stores/postgres/adapters/type-orm.js'
import { generatedPrisma } from '../../../support/postgres/prisma.js'

const URL_OF_NOTHING = 'postgres://postgres@127.0.0.1:1/postgres'
const pool = new Pool({ connectionString: URL_OF_NOTHING })
const kysely = new Kysely({ dialect: new PostgresDialect({ pool }) })
const source = new DataSource({ type: 'postgres', url: URL_OF_NOTHING })

it('the type of the transaction is that of Prisma, also of an extended client', async () => {
  const folder = await generatedPrisma()
  expect(await compile(folder, PRISMA_PROGRAM)).toBe('')
  expect(await compile(folder, `${PRISMA_PROGRAM}\nconst wrong: number = plain`)).toContain(
    'TS2322',
  )
})

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))

const PRISMA_PROGRAM = `
import { PrismaPg } from '@prisma/adapter-pg'
import { fromPrisma } from '${ROOT}src/stores/postgres/adapters/prisma.js'
import type { TransactionRunner } from '${ROOT}src/stores/postgres/runner.js'
import { type Prisma, PrismaClient } from './client/client.js'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const prisma = new PrismaClient({ adapter: new PrismaPg('') })
export const plain = fromPrisma(prisma)
export const isPlain: Equal<typeof plain, TransactionRunner<Prisma.TransactionClient>> = true

const shouting = prisma.$extends({ model: { payment: { shout: (): string => 'PAID' } } })
export const extended = fromPrisma(shouting)
export const told = extended.transaction(
  async (tx) => {
    const payment = await tx.payment.findFirstOrThrow()
    return [tx.payment.shout(), payment.id, payment.note] as const
  },
  { acquireMs: 1, transactionMs: 1 },
)
export const isTold: Equal<typeof told, Promise<readonly [string, string, string | null]>> = true
`

async function compile(folder: string, program: string): Promise<string> {
  const name = `types-${process.pid}`
  await writeFile(join(folder, `${name}.ts`), program)
  const project = {
    extends: join(ROOT, 'tsconfig.json'),
    // What is generated for a user is checked by the user's settings, which are laxer.
    compilerOptions: { rootDir: '/', typeRoots: [join(ROOT, 'node_modules/@types')] },
    include: [`${name}.ts`],
    exclude: [],
  }
  await writeFile(join(folder, `${name}.json`), JSON.stringify(project))
  return new Promise((resolve) => {
    const compiler = join(ROOT, 'node_modules/.bin/tsc')
    const options = ['-p', `${name}.json`, '--pretty', 'false']
    execFile(compiler, options, { cwd: folder }, (error, stdout, stderr) => {
      const output = stdout + stderr
      resolve(error && output === '' ? error.message : output)
    })
  })
}

const NOT_A_CLIENT: readonly [string, unknown][] = [
  ['an address', URL_OF_NOTHING],
  ['a configuration', { host: '127.0.0.1', port: 5432 }],
  ['nothing', undefined],
  ['null', null],
]
const POOL: [string, unknown] = ['a pool', pool]
const SOURCE: [string, unknown] = ['a data source', source]
const OTHERS_OF_TYPEORM: readonly [string, unknown][] = [
  ['an instance of Kysely', kysely],
  ['an entity manager', source.manager],
  [
    'a data source of another database',
    new DataSource({ type: 'cockroachdb', timeTravelQueries: false }),
  ],
]

describe.each<[string, (client: never) => unknown, string, readonly [string, unknown][]]>([
  [
    'fromPg',
    fromPg,
    'a Pool of pg, such as new Pool({ connectionString })',
    [['a client', new Client()]],
  ],
  ['fromPostgresJs', fromPostgresJs, 'what postgres() returns', [POOL]],
  ['fromKysely', fromKysely, 'a Kysely instance', [POOL, SOURCE]],
  ['fromTypeOrm', fromTypeOrm, 'a DataSource of type postgres', [POOL, ...OTHERS_OF_TYPEORM]],
  ['fromPrisma', fromPrisma, 'a PrismaClient', [POOL, SOURCE]],
])('%s refuses', (name, from, expected, others) => {
  it.each([...NOT_A_CLIENT, ...others])('%s', (_, client) => {
    const refusal = new TypeError(`${name}: expected ${expected}`)
    expect(() => from(client as never)).toThrow(refusal)
  })
})
