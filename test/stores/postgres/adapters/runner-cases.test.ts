import { afterAll, beforeAll, describe } from 'vitest'
import { transactionRunnerCases } from '../../../../src/testing/transaction-runner.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres.js'
import { testCases } from '../../../support/store-cases.js'
import { LIBRARIES, type OpenLibrary } from './libraries.js'

const POOL_SIZE = 4

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

describe.each(Object.entries(LIBRARIES))('on %s', (_, openLibrary) => {
  let library: OpenLibrary
  beforeAll(async () => {
    library = await openLibrary(server.url, POOL_SIZE)
  })
  afterAll(() => library.close())

  testCases(transactionRunnerCases(() => library.runner))
})
