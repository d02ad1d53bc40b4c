import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { TransactionEndedError } from '../../../../src/stores/postgres/transaction-proxy/rejected-call.js'
import { revocableTransaction } from '../../../../src/stores/postgres/transaction-proxy/transaction-proxy.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'
import { CREATE_PAYMENT, LIBRARIES, type OpenLibrary } from '../adapters/libraries.js'

const LIMITS = { acquireMs: 20_000, transactionMs: 20_000 }

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
  await server.query(CREATE_PAYMENT)
})
afterAll(() => server.stop())

describe.each(Object.entries(LIBRARIES))('a handle on %s', (name, openLibrary) => {
  const open = async (): Promise<OpenLibrary> => {
    const library = await openLibrary(server.url, 3)
    onTestFinished(() => library.close())
    return library
  }

  it('does what the transaction does, and nothing after its end', async () => {
    const { runner, insert, execute } = await open()
    let leaked: unknown
    await runner.transaction(async (tx) => {
      const { transaction: handle, revoke } = revocableTransaction(tx)
      leaked = handle
      await insert(handle, `${name} kept`)
      await execute(handle, `update payment set note = 'b' where id = '${name} kept'`)
      revoke()
      await expect((async () => insert(handle, `${name} late`))()).rejects.toThrow(
        TransactionEndedError,
      )
      await runner.query(tx, 'select 1 as one', [])
    }, LIMITS)
    for (const use of [insert, execute]) {
      const late = (async () => use(leaked, 'select 1 as one'))()
      await expect(late).rejects.toThrow(TransactionEndedError)
    }
    const rows = await server.query('select id, note from payment where id like $1', [`${name}%`])
    expect(rows).toEqual([{ id: `${name} kept`, note: 'b' }])
  })
})
