import { describe, expect, it, onTestFinished } from 'vitest'
import { sharedPostgres } from '../../../support/postgres/postgres-database.js'
import { startPostgresProxy } from '../../../support/postgres/postgres-proxy.js'
import { succeeds, until } from '../../../support/until.js'
import { ADAPTERS, PG_BY_PIPELINE } from './libraries.js'

const postgres = await sharedPostgres()

/** For postgres.js it takes an option of its own, and drizzle never gives such a connection back. */
const LEFT_OUT = ['postgres.js', 'drizzle']
const RUNNERS = [...ADAPTERS.filter(({ name }) => !LEFT_OUT.includes(name)), PG_BY_PIPELINE]

const LIMITS = { acquireMs: 10_000, transactionMs: 10_000, statementMs: 10_000 }

// An error that nobody listens for would end the process: it fails the run.
describe.each(RUNNERS)(
  'a connection that is ready and ended in one piece, on $name',
  ({ open }) => {
    it('fails what was to run on it, alone, and the next ones serve', async () => {
      const proxy = await startPostgresProxy(postgres)
      onTestFinished(() => proxy.stop())
      const { runner, close } = await open(proxy.url, 1)
      onTestFinished(async () => void (await close()))
      const one = () => runner.query(undefined, 'select 1 as one', [], LIMITS)
      expect(await one()).toEqual([{ one: 1 }])
      proxy.fail('ready and ended')
      proxy.cut()
      await expect(one()).rejects.toThrow()
      await expect(runner.transaction(async () => {}, LIMITS)).rejects.toThrow()
      await expect(one()).rejects.toThrow()
      await proxy.heal()
      await until('it serves', () => succeeds(one()))
    })
  },
)
