import { afterAll, beforeAll, describe } from 'vitest'
import { transactionRunnerCases } from '../../../../src/testing/transaction-runner/transaction-runner-cases.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'
import { testCases } from '../../../support/stores/store-cases.js'
import { ALL_RUNNERS, type AnyRunner } from './all-runners.js'

const POOL_SIZE = 4

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

describe.each(ALL_RUNNERS)('on %s', (library, open) => {
  let opened: AnyRunner
  beforeAll(async () => {
    opened = await open(server.url, POOL_SIZE)
  })
  afterAll(async () => {
    await opened.end()
  })

  const cases = transactionRunnerCases(() => opened.runner)
  // Asked for its ROLLBACK on a lost connection, postgres.js 3.4 fails outside of every promise.
  const isFit = (rule: string): boolean =>
    library !== 'postgres.js' || !rule.startsWith('a connection that is lost')
  testCases(cases.filter(({ name }) => isFit(name)))
})
