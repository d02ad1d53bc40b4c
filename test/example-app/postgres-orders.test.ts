import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createBilling } from '../../example-app/billing/billing.js'
import { createPlacedOrders } from '../../example-app/billing/placed-orders.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../example-app/identity-core/identity-core.js'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { notifyBilling } from '../../example-app/orders/notify-billing.js'
import { type OpenPostgres, openPostgres } from '../../example-app/orders/open-postgres.js'
import type { Order } from '../../example-app/orders/order.js'
import { createOrders } from '../../example-app/orders/orders.js'
import { coupledPersistence } from '../../example-app/orders/persistence.js'
import { sharedPostgres } from '../support/postgres/postgres-database.js'
import { API_KEY, serviceTokenBy } from './core-client.js'
import { migratedDatabase } from './migrated.js'
import { noSessions } from './no-sessions.js'

const postgres = await sharedPostgres()
const LAMP = { item: 'lamp', quantity: 9_007_199_254_740_991 }

let core: IdentityCore
let opened: OpenPostgres
let orders: RunningServer

beforeAll(async () => {
  core = await startIdentityCore({ apiKey: API_KEY })
  opened = await openPostgres(await migratedDatabase(postgres), (warning) => {
    throw new Error(warning)
  })
  const receiver = createOrders({
    ...coupledPersistence(opened),
    issuer: core.issuer,
    verifySession: noSessions,
  })
  await receiver.ready()
  orders = await listen(receiver.app, 0)
})
afterAll(async () => {
  await orders.close()
  await opened.close()
  await core.close()
})

const authorization = async (permission: string): Promise<string> =>
  `Bearer ${await serviceTokenBy(core, 'billing', { permissions: [permission] })}`

const write = async (key: string, body: object = LAMP): Promise<Response> =>
  fetch(`${orders.url}/orders`, {
    method: 'POST',
    headers: {
      authorization: await authorization('orders:write'),
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
  })

/** Whoever lost the connection may ask again before the first write has been rolled back. */
async function writeOnceFree(key: string, body: object): Promise<Response> {
  for (;;) {
    const answer = await write(key, body)
    if (answer.status !== 409) return answer
    expect(answer.headers.get('retry-after')).toBe('1')
    await delay(50)
  }
}

async function rows(text: string): Promise<unknown[]> {
  return (await opened.pool.query(text)).rows
}

it('writes an order, which can be read, and repeats its answer', async () => {
  const first = await write('a')
  const order = (await first.json()) as Order
  expect([first.status, order]).toMatchObject([201, { ...LAMP, orderedBy: 'billing' }])
  const retry = await write('a')
  expect([retry.headers.get('idempotent-replayed'), await retry.json()]).toEqual(['true', order])
  const headers = { authorization: await authorization('orders:read') }
  const read = await fetch(`${orders.url}${first.headers.get('location')}`, { headers })
  expect([read.status, await read.json()]).toEqual([200, order])
  expect((await fetch(`${orders.url}/orders/%00`, { headers })).status).toBe(404)
})

it('writes nothing, and tells of nothing, when an order breaks on its way', async () => {
  const written = async () =>
    rows(
      'select (select count(*) from orders) as orders, (select count(*) from pgboss.job) as jobs',
    )
  const before = await written()
  const glass = { item: 'glass', quantity: 1 }
  await expect(write('b', glass)).rejects.toThrow('fetch failed')
  await expect(writeOnceFree('b', glass)).rejects.toThrow('fetch failed')
  expect(await written()).toEqual(before)
})

it('refuses what Postgres cannot keep', async () => {
  expect((await write('c', { item: 'a\u0000b', quantity: 1 })).status).toBe(400)
})

it('tells billing again when nobody knows whether it was told, and billing takes it once', async () => {
  const placed = createPlacedOrders({ issuer: core.issuer })
  const billing = await listen(
    createBilling({ orders: {} as never, placedOrders: placed.router }),
    0,
  )
  const tell = notifyBilling({
    coreUrl: core.url,
    issuer: core.issuer,
    apiKey: API_KEY,
    billingUrl: billing.url,
  })
  const order = { id: 'o-9', item: 'lamp', quantity: 1, orderedBy: 'billing' }
  const id = 'a2f7b9f4-56e8-8e3b-a2bb-0d0f6d4ac1f5'
  await tell(order, id)
  await tell(order, id)
  const taken = await fetch(`${billing.url}/placed-orders/o-9`)
  expect(await taken.json()).toEqual({ id: 'o-9', taken: 1 })
  expect((await fetch(`${billing.url}/placed-orders`, { method: 'POST' })).status).toBe(401)
  await billing.close()
  placed.close()
})
