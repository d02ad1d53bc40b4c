import { createTestCore, type TestCore } from 'express-service-auth/testing'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createBilling } from '../../example-app/billing/billing.js'
import { createOrdersClient } from '../../example-app/billing/orders-client.js'
import { listen } from '../../example-app/listen.js'
import {
  answer,
  hangUp,
  type Reply,
  startService,
  unavailable,
} from '../client/scripted-service.js'

const order = (status: number, headers: Record<string, string> = {}): Reply =>
  answer(status, { 'content-type': 'application/json', ...headers }, '{"id":"o-7"}')

let core: TestCore
beforeAll(async () => {
  core = await createTestCore()
})
afterAll(() => core.close())

/** Billing, and orders that answers as told. */
async function open(...replies: readonly Reply[]) {
  const orders = await startService(...replies)
  const { url: coreUrl, issuer, apiKey } = core
  const client = createOrdersClient({ coreUrl, issuer, apiKey, ordersUrl: orders.url })
  const billing = await listen(createBilling({ orders: client }))
  onTestFinished(() => billing.close())
  const putInvoice = async (id: string, body = '{"item":"desk","quantity":1}') => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${billing.url}/invoices/${id}`, { method: 'PUT', headers, body })
    return { status: response.status, body: await response.json() }
  }
  return { orders, billing, putInvoice }
}

it('sends a token with the permission of the call alone, and a new one to write', async () => {
  const { orders, billing, putInvoice } = await open(order(201), order(200))
  const permissions = () =>
    orders.tokens.map((bearer) => decodeJwt(String(bearer?.split(' ')[1]))['permissions'])
  await putInvoice('1')
  expect(permissions()).toEqual([['orders:write']])
  expect(await (await fetch(`${billing.url}/orders/o-7`)).json()).toEqual({ id: 'o-7' })
  expect(permissions()).toEqual([['orders:write'], ['orders:read']])
})

it.each([
  ['a lost answer', hangUp],
  ['503 with Retry-After', unavailable()],
])('retries after %s, with the same key and a fresh token', async (_, first) => {
  const { orders, putInvoice } = await open(first, order(201, { 'idempotent-replayed': 'true' }))
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
  const { orders, putInvoice } = await open(answer(status, { 'retry-after': '0' }, '{}'))
  expect((await putInvoice('20')).status).toBe(expected)
  expect(orders.requests).toHaveLength(attempts)
})

it.each([
  ['an invoice id that is no key', 'a%20b', '{}'],
  ['a body that is no JSON', '22', '{'],
])('answers 400 to %s, without a call', async (_, id, body) => {
  const { orders, putInvoice } = await open(order(201))
  expect((await putInvoice(id, body)).status).toBe(400)
  expect(orders.requests).toEqual([])
})
