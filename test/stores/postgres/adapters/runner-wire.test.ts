import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { transactionRunnerCases } from '../../../../src/testing/transaction-runner/transaction-runner-cases.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'
import { type PostgresProxy, startPostgresProxy } from '../../../support/postgres/postgres-proxy.js'
import { testCases } from '../../../support/stores/store-cases.js'
import { OPEN_RUNNERS, type OpenRunner } from './open-runners.js'

const LIMITS = { acquireMs: 2000, transactionMs: 500 }

/** Beyond `begin`, a handler's insert and `commit`: the opening, and the record where it is alone. */
const ROUND_TRIPS: Record<string, number> = { pg: 3, 'postgres.js': 7, drizzle: 5 }

/** postgres.js ends an empty transaction, behind the answer. */
const COMMITS: Record<string, number> = { pg: 1, 'postgres.js': 2, drizzle: 1 }

let server: PostgresServer
let proxy: PostgresProxy
beforeAll(async () => {
  server = await startPostgres()
  proxy = await startPostgresProxy(server)
  await server.query('create table ledger (id int primary key)')
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})

beforeEach(() => server.query('truncate ledger'))

const urlThrough = (port: number): string => server.url.replace(`:${server.port}/`, `:${port}/`)

describe.each(OPEN_RUNNERS)('a runner on %s', (name, openRunner) => {
  describe('as any runner', () => {
    let opened: OpenRunner
    beforeAll(() => {
      opened = openRunner(server.url, 4)
    })
    afterAll(() => opened.end())
    testCases(transactionRunnerCases(() => opened.runner))
  })

  async function run(opened: OpenRunner, id: number): Promise<void> {
    const { runner, write } = opened
    const opening = { text: 'select 1', values: [] }
    const record = { text: 'insert into ledger values ($1)', values: [id] }
    await runner.transaction(async (tx) => {
      await runner.batch?.(tx, [opening, opening])
      await write(tx, 'select 2')
      if (runner.commitWith) return runner.commitWith(tx, [record])
      await runner.query(tx, record.text, record.values)
    }, LIMITS)
  }

  it('takes as many round trips as it must', async () => {
    const opened = openRunner(urlThrough(proxy.port), 1)
    await run(opened, 1)
    proxy.reset()
    await run(opened, 2)
    expect(proxy.roundTrips).toBe(ROUND_TRIPS[name])
    expect(proxy.commits).toBe(COMMITS[name])
    await opened.end()
  })

  it.each(['before', 'after', 'in the reply', 'silent before'] as const)(
    'rejects when the connection fails %s the commit',
    async (moment) => {
      const opened = openRunner(urlThrough(proxy.port), 1)
      await run(opened, 1)
      proxy.cutAt({ at: /^commit/i, moment })
      await expect(run(opened, 2)).rejects.toThrow()
      const found = await server.query('select id from ledger order by id')
      const isCommitted = moment === 'after' || moment === 'in the reply'
      expect(found.map(({ id }) => id)).toEqual(isCommitted ? [1, 2] : [1])
      await proxy.heal()
      await opened.end()
    },
  )
})
