import { createTestCore, type TestCore } from 'express-service-auth/testing'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createBilling } from '../../example-app/billing/billing.js'
import { createOrdersClient } from '../../example-app/billing/orders-client.js'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { type ScriptedServer, startScriptedServer } from './scripted-server.js'

const CREATED = { status: 201, body: { id: 'o-7' } }
const UNAVAILABLE = { status: 503, headers: { 'retry-after': '0' } }

let core: TestCore
let orders: ScriptedServer
let billing: RunningServer

beforeAll(async () => {
  core = await createTestCore()
  orders = await startScriptedServer()
  billing = await startBilling(core.apiKey)
})
beforeEach(() => orders.script(CREATED))
afterAll(() => Promise.all([core, orders, billing].map((server) => server.close())))

function startBilling(apiKey: string): Promise<RunningServer> {
  const { url: coreUrl, issuer } = core
  const client = createOrdersClient({ coreUrl, issuer, apiKey, ordersUrl: orders.url })
  return listen(createBilling({ orders: client }))
}

async function putInvoice(id: string, body = '{"item":"desk","quantity":1}') {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${billing.url}/invoices/${id}`, { method: 'PUT', headers, body })
  return { status: response.status, body: await response.json() }
}

it('sends a token with the permission of the call alone, and a new one to write', async () => {
  const permissions = () =>
    orders.requests.map(({ headers }) => {
      const [, payload = ''] = (headers.authorization ?? '').split('.')
      return JSON.parse(Buffer.from(payload, 'base64url').toString()).permissions
    })
  await putInvoice('1')
  expect(permissions()).toEqual([['orders:write']])
  orders.script({ status: 200, body: { id: 'o-7' } })
  expect(await (await fetch(`${billing.url}/orders/o-7`)).json()).toEqual({ id: 'o-7' })
  expect(permissions()).toEqual([['orders:read']])
})

it.each([
  ['a lost answer', 'hang up' as const],
  ['503 with Retry-After', UNAVAILABLE],
])('retries after %s, with the same key and a fresh token', async (_, first) => {
  orders.script(first, { ...CREATED, headers: { 'idempotent-replayed': 'true' } })
  expect(await putInvoice('17')).toEqual({
    status: 200,
    body: { invoice: '17', order: { id: 'o-7' }, attempts: 2, isReplay: true },
  })
  const { requests } = orders
  expect(requests.map(({ headers }) => headers['idempotency-key'])).toEqual([
    '"invoice-17"',
    '"invoice-17"',
  ])
  expect(new Set(requests.map(({ headers }) => headers.authorization)).size).toBe(2)
})

it.each([
  [400, 400, 1],
  [403, 502, 1],
  [422, 409, 1],
  [503, 503, 4],
])('passes a %d on as %d, after %d attempts', async (status, expected, attempts) => {
  orders.script({ status, headers: { 'retry-after': '0' } })
  expect((await putInvoice('20')).status).toBe(expected)
  expect(orders.requests).toHaveLength(attempts)
})

it.each([
  ['an invoice id that is no key', 'a%20b', '{}'],
  ['a body that is no JSON', '22', '{'],
])('answers 400 to %s, without a call', async (_, id, body) => {
  expect((await putInvoice(id, body)).status).toBe(400)
  expect(orders.requests).toEqual([])
})
