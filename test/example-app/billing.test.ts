import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createBilling } from '../../example-app/billing/billing.js'
import { createOrdersClient } from '../../example-app/billing/orders-client.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../example-app/identity-core/identity-core.js'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { API_KEY } from './core-client.js'
import { decodeToken } from './decode-token.js'
import { type ScriptedServer, startScriptedServer } from './scripted-server.js'

const CREATED = { status: 201, body: { id: 'o-7' } }
const UNAVAILABLE = { status: 503, headers: { 'retry-after': '0' } }
const IN_PROGRESS = {
  status: 409,
  headers: { 'retry-after': '0', 'content-type': 'application/problem+json' },
  body: { type: 'urn:express-service-auth:request-in-progress' },
}

let core: IdentityCore
let orders: ScriptedServer
let billing: RunningServer

beforeAll(async () => {
  core = await startIdentityCore({ apiKey: API_KEY })
  orders = await startScriptedServer()
  billing = await startBilling({ apiKey: API_KEY })
})
beforeEach(() => orders.script(CREATED))
afterAll(() => Promise.all([core, orders, billing].map((server) => server.close())))

const openClient = (coreUrl: string, apiKey: string) =>
  createOrdersClient({ coreUrl, issuer: core.issuer, apiKey, ordersUrl: orders.url })

function startBilling({ apiKey }: { apiKey: string }) {
  return listen(createBilling({ orders: openClient(core.url, apiKey) }), 0)
}

async function putInvoice(id: string, body: string = '{"item":"desk","quantity":1}') {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${billing.url}/invoices/${id}`, { method: 'PUT', headers, body })
  return { status: response.status, body: await response.json() }
}

function sentTokens() {
  return orders.requests.map(({ headers }) => {
    const { header, payload } = decodeToken(headers.authorization?.slice('Bearer '.length) ?? '')
    return { header: JSON.parse(header), payload: JSON.parse(payload) }
  })
}

const sentKeys = () => orders.requests.map(({ headers }) => headers['idempotency-key'])

describe('the token that billing sends', () => {
  it('lives 300 s, has a fixed schema and the permission of the call, by a dynamic key', async () => {
    await putInvoice('1')
    const [token] = sentTokens()
    const { iat, exp, jti, ...claims } = token?.payload ?? {}
    expect(token?.header.kid).toMatch(/^d-/)
    expect(exp - iat).toBe(300)
    expect(jti).toMatch(/^[\w-]{22}$/)
    expect(claims).toEqual({
      iss: core.issuer,
      sub: 'billing',
      aud: 'orders',
      source: 'microservice',
      token_type: 'service-access',
      permissions: ['orders:write'],
    })
  })

  it('only reads when billing only reads', async () => {
    orders.script({ status: 200, body: { id: 'o-7' } })
    const response = await fetch(`${billing.url}/orders/o-7`)
    expect(await response.json()).toEqual({ id: 'o-7' })
    expect(orders.requests[0]).toMatchObject({ method: 'GET', path: '/orders/o-7' })
    expect(sentTokens()[0]?.payload.permissions).toEqual(['orders:read'])
  })
})

describe('a retry', () => {
  it.each([
    ['a lost answer', 'hang up' as const],
    ['503 with Retry-After', UNAVAILABLE],
    ['409 of a request in progress', IN_PROGRESS],
  ])('follows %s, with the same key, the same body and a fresh token', async (_, first) => {
    const replay = { ...CREATED, headers: { 'idempotent-replayed': 'true' } }
    orders.script(first, replay)
    expect(await putInvoice('17')).toEqual({
      status: 200,
      body: { invoice: '17', order: { id: 'o-7' }, attempts: 2, isReplay: true },
    })
    expect(sentKeys()).toEqual(['"invoice-17"', '"invoice-17"'])
    expect(new Set(orders.requests.map(({ body }) => body)).size).toBe(1)
    expect(new Set(sentTokens().map(({ payload }) => payload.jti)).size).toBe(2)
  })

  it('ends after four attempts', async () => {
    orders.script(UNAVAILABLE)
    expect(await putInvoice('19')).toEqual({
      status: 503,
      body: { error: 'orders answered 503', attempts: 4 },
    })
    expect(orders.requests).toHaveLength(4)
  })

  it.each([
    [400, 400],
    [401, 502],
    [403, 502],
    [409, 502],
    [422, 409],
    [500, 502],
  ])('does not follow a %d, which billing answers with %d', async (status, expected) => {
    orders.script({ status, headers: { 'www-authenticate': 'Bearer realm="service"' } })
    expect((await putInvoice('20')).status).toBe(expected)
    expect(orders.requests).toHaveLength(1)
  })
})

it('sends its token nowhere else when orders redirects', async () => {
  const elsewhere = await startScriptedServer()
  elsewhere.script(CREATED)
  orders.script({ status: 307, headers: { location: `${elsewhere.url}/orders` } })
  expect((await putInvoice('21')).status).toBe(502)
  expect(elsewhere.requests).toEqual([])
  await elsewhere.close()
})

it.each([
  ['an invoice id that is no key', 'a%20b', '{}'],
  ['a body that is no JSON', '22', '{'],
])('answers 400 to %s, without a call', async (_, id, body) => {
  expect((await putInvoice(id, body)).status).toBe(400)
  expect(orders.requests).toEqual([])
})

it('answers 502 and calls nobody when the core makes no token', async () => {
  const outsider = await startBilling({ apiKey: 'not-the-key' })
  const response = await fetch(`${outsider.url}/orders/o-1`)
  expect(response.status).toBe(502)
  expect(await response.text()).not.toContain('not-the-key')
  expect(orders.requests).toEqual([])
  await outsider.close()
})

describe('at the start', () => {
  it('is content with a core that takes its API key', async () => {
    await openClient(core.url, API_KEY).ready()
  })

  it('says that the core does not answer, or refuses the key', async () => {
    await expect(openClient('http://127.0.0.1:2', API_KEY).ready()).rejects.toThrow(
      'core_unreachable',
    )
    await expect(openClient(core.url, 'wrong').ready()).rejects.toThrow(
      'api_key_refused, status 401',
    )
  })
})
