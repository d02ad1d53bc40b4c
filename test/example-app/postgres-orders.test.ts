import { createTestCore, createTestIssuer } from 'express-service-auth/testing'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { createBilling } from '../../example-app/billing/billing.js'
import { createPlacedOrders } from '../../example-app/billing/placed-orders.js'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { notifyBilling } from '../../example-app/orders/notify-billing.js'
import { type OpenStorage, openStorage } from '../../example-app/orders/open-storage.js'
import type { Order } from '../../example-app/orders/order.js'
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

it('writes an order, which can be read, and repeats its answer', async () => {
  const first = await write('a')
  const order = (await first.json()) as Order
  expect([first.status, order]).toMatchObject([201, { ...LAMP, orderedBy: 'billing' }])
  const retry = await write('a')
  expect([retry.headers.get('idempotent-replayed'), await retry.json()]).toEqual(['true', order])
  const read = await fetch(`${orders.url}${first.headers.get('location')}`, { headers: headers() })
  expect([read.status, await read.json()]).toEqual([200, order])
  expect((await fetch(`${orders.url}/orders/%00`, { headers: headers() })).status).toBe(404)
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

it('tells billing again when nobody knows whether it was told, and billing takes it once', async () => {
  const core = await createTestCore()
  const jwksUri = `${core.url}/.well-known/jwks.json`
  const placed = createPlacedOrders({ issuer: core.issuer, jwksUri })
  const billing = await listen(createBilling({ orders: {} as never, placedOrders: placed.router }))
  onTestFinished(async () => {
    await billing.close()
    placed.close()
    await core.close()
  })
  const { url: coreUrl, issuer: name, apiKey } = core
  const tell = notifyBilling({ coreUrl, issuer: name, apiKey, billingUrl: billing.url })
  const order = { id: 'o-9', item: 'lamp', quantity: 1, orderedBy: 'billing' }
  const id = 'a2f7b9f4-56e8-8e3b-a2bb-0d0f6d4ac1f5'
  await tell(order, id)
  await tell(order, id)
  const taken = await fetch(`${billing.url}/placed-orders/o-9`)
  expect(await taken.json()).toEqual({ id: 'o-9', taken: 1 })
  expect((await fetch(`${billing.url}/placed-orders`, { method: 'POST' })).status).toBe(401)
})
