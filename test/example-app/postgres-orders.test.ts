import { createTestIssuer } from 'express-service-auth/testing'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { type OpenStorage, openStorage } from '../../example-app/orders/open-storage.js'
import { createOrders } from '../../example-app/orders/orders.js'
import { sharedPostgres } from '../support/postgres/postgres-database.js'
import { migratedDatabase } from './migrated.js'

const postgres = await sharedPostgres()
const LAMP = { item: 'lamp', quantity: 9_007_199_254_740_991 }
const issuer = await createTestIssuer()

let opened: OpenStorage
let orders: RunningServer

beforeAll(async () => {
  vi.stubEnv('DATABASE_URL', await migratedDatabase(postgres))
  opened = await openStorage((warning) => {
    throw new Error(warning)
  })
  const receiver = createOrders({
    policy: issuer.policy(),
    storage: opened.storage,
    verifySession: (_request, response) => void response.sendStatus(401),
  })
  orders = await listen(receiver.app)
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await orders.close()
  await opened.close()
  await issuer.close()
})

const headers = () => ({ authorization: `Bearer ${issuer.token()}` })

const write = async (key: string, body: object = LAMP): Promise<Response> =>
  fetch(`${orders.url}/orders`, {
    method: 'POST',
    headers: { ...headers(), 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(body),
  })

it('writes nothing, and tells of nothing, when an order breaks on its way', async () => {
  const written = async () => {
    const jobs = await opened.database?.pool.query('select count(*) from pgboss.job')
    return [await opened.storage.book.count(), jobs?.rows]
  }
  const before = await written()
  await expect(write('b', { item: 'glass', quantity: 1 })).rejects.toThrow('fetch failed')
  expect(await written()).toEqual(before)
})

it('refuses what Postgres cannot keep', async () => {
  expect((await write('c', { item: 'a\u0000b', quantity: 1 })).status).toBe(400)
})
