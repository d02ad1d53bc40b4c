import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { postgresStore, TransactionEndedError } from 'express-service-auth/postgres'
import { Pool } from 'pg'
import { DataSource, EntitySchema } from 'typeorm'
import { expect, it, onTestFinished } from 'vitest'
import type { CoupledStore, HandlerEnding } from '../../../../src/idempotency/run.js'
import { fromPg } from '../../../../src/stores/postgres/adapters/pg.js'
import { fromPrisma } from '../../../../src/stores/postgres/adapters/prisma.js'
import { fromTypeOrm } from '../../../../src/stores/postgres/adapters/type-orm.js'
import { sharedPostgres } from '../../../support/postgres/postgres-database.js'
import { openPrisma } from '../../../support/postgres/prisma.js'
import { createLedger } from '../../../support/receiver/coupled-receiver.js'
import { CREATE_PAYMENT } from '../adapters/libraries.js'

const server = await sharedPostgres()
const ledger = await createLedger(server)
await ledger.query(CREATE_PAYMENT)

const COMMIT: HandlerEnding = { type: 'answered', status: 201, result: Buffer.from('made') }
const RUNS = 5

/** What Prisma makes of the model, where the test's own type does not have it. */
interface Payments {
  upsert(query: object): PromiseLike<unknown>
  create(query: object): PromiseLike<unknown>
  findUnique(query: object): PromiseLike<unknown>
}

class Payment {
  id = ''
  note: string | null = null
  summary(): string {
    return `payment ${this.id}`
  }
}

const payments = new EntitySchema<Payment>({
  name: 'Payment',
  target: Payment,
  tableName: 'payment',
  columns: { id: { type: 'text', primary: true }, note: { type: 'text', nullable: true } },
})

async function run(
  store: CoupledStore,
  handler: (requester: never) => unknown,
  ending: HandlerEnding = COMMIT,
) {
  const requester = {}
  const key = { recordId: randomUUID(), fingerprint: 'same', hasKey: true }
  const request = { ...key, retentionMs: 60_000, requester }
  return store.run(request, async (coupled) => {
    await handler(requester as never)
    coupled.answered()
    return ending
  })
}

async function openPrismaStore() {
  const prisma = await openPrisma(ledger.url, 1)
  onTestFinished(() => prisma.$disconnect())
  return postgresStore(fromPrisma(prisma), { sweepSeconds: false })
}

async function openTypeOrmStore() {
  const source = new DataSource({
    type: 'postgres',
    url: ledger.url,
    poolSize: 2,
    entities: [payments],
    installExtensions: false,
  })
  await source.initialize()
  onTestFinished(() => source.destroy())
  return postgresStore(fromTypeOrm(source), { sweepSeconds: false })
}

function openPgStore() {
  const pool = new Pool({ connectionString: ledger.url, max: 1 })
  onTestFinished(() => pool.end())
  return { pool, store: postgresStore(fromPg(pool), { sweepSeconds: false }) }
}

const made = async (prefix: string) => {
  const [row] = await ledger.query<{ rows: number; transactions: number }>(
    'select count(*)::int as rows, count(distinct xmin::text)::int as transactions from payment where id like $1',
    [`${prefix}%`],
  )
  return row
}

it("Prisma's lazy queries of one row fail after the answer", async () => {
  const store = await openPrismaStore()
  const id = randomUUID()
  let late: PromiseLike<unknown>[] = []
  await run(store, async (requester) => {
    const { payment } = store.transactionOf(requester) as unknown as { payment: Payments }
    const where = { id }
    late = [
      payment.create({ data: { id } }),
      payment.findUnique({ where }),
      payment.upsert({ where, create: { id }, update: {} }),
    ]
  })
  for (const each of late) {
    await expect((async () => each)()).rejects.toThrow(TransactionEndedError)
  }
  expect(await made(id)).toEqual({ rows: 0, transactions: 0 })
})

it.each<[HandlerEnding, object]>([
  [COMMIT, { rows: 4, transactions: 1 }],
  [{ type: 'aborted' }, { rows: 0, transactions: 0 }],
])(
  'what Prisma does in several statements ends before the transaction: %j',
  async (ending, expected) => {
    const store = await openPrismaStore()
    for (let time = 0; time < RUNS; time++) {
      const prefix = randomUUID()
      await run(
        store,
        async (requester) => {
          const { payment } = store.transactionOf(requester) as unknown as { payment: Payments }
          for (const each of ['a', 'b', 'c', 'd']) {
            const create = { id: prefix + each }
            const query = { where: { id: `${prefix} none` }, create, update: {} }
            payment.upsert(query).then(undefined, () => {})
          }
          await delay(time)
        },
        ending,
      )
      await delay(20)
      expect(await made(prefix)).toEqual(expected)
    }
  },
)

it('entities that TypeORM makes are as they are without a store, also after the answer', async () => {
  const store = await openTypeOrmStore()
  const id = randomUUID()
  const entities: Payment[] = []
  await run(store, async (requester) => {
    const manager = store.transactionOf(requester)
    const repository = manager.getRepository(Payment)
    entities.push(manager.create(Payment, { id }), repository.create({ id }))
    entities.push(repository.merge(new Payment(), { id }))
    for (const entity of entities) await manager.save(entity)
  })
  for (const entity of entities) {
    expect(entity.summary()).toBe(`payment ${id}`)
    expect(structuredClone(entity)).toEqual({ id, note: null })
  }
})

it("a query runner of one's own can be ended and given back", async () => {
  const store = await openTypeOrmStore()
  for (let time = 0; time < RUNS; time++) {
    const outcome = await run(store, async (requester) => {
      const runner = store.transactionOf(requester).connection.createQueryRunner()
      await runner.connect()
      await runner.startTransaction()
      await runner.commitTransaction()
      await runner.release()
    })
    expect(outcome).toMatchObject({ outcome: 'answered', end: 'result_kept' })
  }
})

it('a listener can be taken off when the transaction has ended', async () => {
  const { pool, store } = openPgStore()
  const listener = (): void => {}
  let takeOff = (): unknown => undefined
  await run(store, (requester) => {
    const client = store.transactionOf(requester)
    client.on('notice', listener)
    takeOff = () => client.off('notice', listener)
  })
  takeOff()
  const client = await pool.connect()
  expect(client.listenerCount('notice')).toBe(0)
  client.release()
})
