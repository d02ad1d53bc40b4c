import { setTimeout as delay } from 'node:timers/promises'
import { Pool, type PoolConfig } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { transactionRunnerCases } from '../../../src/testing/transaction-runner/transaction-runner-cases.js'
import { type PostgresServer, startPostgres } from '../../support/postgres/postgres.js'
import { testCases } from '../../support/stores/store-cases.js'
import { BROKEN_RUNNERS, ownRunner, type Runner } from './runners.js'

const POOL_SIZE = 4

let server: PostgresServer
let pool: Pool
beforeAll(async () => {
  server = await startPostgres()
  pool = openPool()
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

function openPool(more: PoolConfig = {}): Pool {
  const fixed = { connectionString: server.url, max: POOL_SIZE, lock_timeout: 500 }
  const opened = new Pool({ ...fixed, ...more })
  opened.on('error', () => {})
  opened.on('connect', (client) => client.on('error', () => {}))
  return opened
}

describe('transactionRunnerCases', () => {
  describe('find nothing wrong with a sound runner', () => {
    testCases(transactionRunnerCases(() => ownRunner(pool)))
  })

  it('find nothing wrong where one connection takes longer to open than the others', async () => {
    const openingMs = [0, 300]
    const own = openPool({ onConnect: () => delay(openingMs.shift()) })
    expect(await firstBrokenRule(ownRunner(own), /pool is exhausted/)).toBeUndefined()
    expect(openingMs).toEqual([])
    await own.end()
  })

  it.concurrent.each(Object.entries(BROKEN_RUNNERS))(
    'reject a runner that %s',
    async (_, breakIt) => {
      const own = openPool()
      const sound = ownRunner(own)
      const broken = { ...sound, ...breakIt(sound, own) }
      expect(await firstBrokenRule(broken)).toBeDefined()
    },
  )
})

/** What it leaves behind may be in the way of every later rule. */
async function firstBrokenRule(runner: Runner, among = /./): Promise<string | undefined> {
  for (const { name, run } of transactionRunnerCases(() => runner)) {
    if (!among.test(name)) continue
    const isKept = await run().then(
      () => true,
      () => false,
    )
    if (!isKept) return name
  }
  return undefined
}
