import postgres from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fromPostgresJs } from '../../../../src/stores/postgres/adapters/postgres-js.js'
import { type Pgbouncer, startPgbouncer } from '../../../support/postgres/pgbouncer.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'
import { CREATE_PAYMENT } from './libraries.js'

const LIMITS = { acquireMs: 5000, transactionMs: 5000 }
const LANES = 4
const TURNS = 40

let server: PostgresServer
let pgbouncer: Pgbouncer
beforeAll(async () => {
  server = await startPostgres()
  await server.query(CREATE_PAYMENT)
  pgbouncer = await startPgbouncer(server, { poolMode: 'transaction' })
})
afterAll(async () => {
  await pgbouncer.stop()
  await server.stop()
})

/**
 * With `prepare`, the default, the library's own `commit` is a statement that a connection behind pgbouncer may not
 * know: the transaction is rolled back, and the library resolves.
 */
it.each([true, false])(
  'postgres.js with prepare: %s, behind pgbouncer, resolves for what is committed',
  async (prepare) => {
    const lanes = Array.from({ length: LANES }, (_, lane) => write(`${prepare} ${lane}`, prepare))
    const told = (await Promise.all(lanes)).flat()
    const rows = await server.query<{ id: string }>('select id from payment')
    const stored = new Set(rows.map(({ id }) => id))
    expect(told.filter((id) => !stored.has(id))).toEqual([])
    if (prepare) expect(told.length).toBeGreaterThan(0)
    else expect(told).toHaveLength(2 * LANES * TURNS)
  },
)

/** Resolves with what the runner says that it has committed. */
async function write(lane: string, prepare: boolean): Promise<string[]> {
  const sql = postgres(pgbouncer.url, { max: 2, onnotice: () => {}, prepare })
  const runner = fromPostgresJs(sql)
  const insert = 'insert into payment (id) values ($1)'
  const turn = async (id: string): Promise<string> => {
    await runner.transaction(async (tx) => {
      await runner.query(tx, insert, [id])
    }, LIMITS)
    return id
  }
  const ids = Array.from({ length: TURNS }, (_, index) => `${lane}/${index}`)
  const settled: PromiseSettledResult<string>[] = []
  for (const id of ids) settled.push(...(await Promise.allSettled([turn(id), turn(`${id}+`)])))
  await sql.end({ timeout: 1 })
  return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}
