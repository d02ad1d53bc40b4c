import type { DecisionEvent } from 'express-service-auth'
import { memoryStore } from 'express-service-auth'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../example-app/identity-core/identity-core.js'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { openStore } from '../../example-app/orders/open-store.js'
import type { Order } from '../../example-app/orders/order.js'
import { createOrders } from '../../example-app/orders/orders.js'
import { leasedPersistence } from '../../example-app/orders/persistence.js'
import { openSessions } from '../../example-app/orders/sessions.js'
import { startRedis } from '../support/redis/redis.js'
import { until } from '../support/until.js'
import { API_KEY, serviceTokenBy, sessionOf } from './core-client.js'

const CHAIR: Order = { id: 'o-1', item: 'chair', quantity: 4, orderedBy: 'billing' }
const LAMP = { item: 'lamp', quantity: 2 }

const store = memoryStore()
const book = new Map([[CHAIR.id, CHAIR]])
const persistence = leasedPersistence(store, book)
let events: DecisionEvent[] = []
let core: IdentityCore
let verifySession: ReturnType<typeof openSessions>
let instances: RunningServer[] = []

beforeAll(async () => {
  core = await startIdentityCore({ apiKey: API_KEY })
  // In no other file that shares a process: the SDK keeps the first core that it is given.
  verifySession = openSessions({ coreUrl: core.url, issuer: core.issuer, apiKey: API_KEY })
  const start = async () => {
    const onDecision = (event: DecisionEvent) => events.push(event)
    const options = { ...persistence, issuer: core.issuer, verifySession, onDecision }
    const orders = createOrders(options)
    await orders.ready()
    return listen(orders.app, 0)
  }
  instances = [await start(), await start()]
})
beforeEach(() => {
  events = []
})
afterAll(async () => {
  await Promise.all([core, ...instances].map((server) => server.close()))
  store.close()
})

const tokenOf = (caller: string, ...permissions: string[]) =>
  serviceTokenBy(core, caller, { permissions })

const read = (token: string, id = CHAIR.id) =>
  fetch(`${instances[0]?.url}/orders/${id}`, { headers: { authorization: `Bearer ${token}` } })

function write(token: string, { key = '', body = LAMP as object, instance = 0 } = {}) {
  return fetch(`${instances[instance]?.url}/orders`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(key && { 'idempotency-key': key }),
    },
    body: JSON.stringify(body),
  })
}

it.each(['billing', 'reporting'])('lets %s read with orders:read', async (caller) => {
  const response = await read(await tokenOf(caller, 'orders:read'))
  expect([response.status, await response.json()]).toEqual([200, CHAIR])
})

it('answers 404 for an order that is not there', async () => {
  expect((await read(await tokenOf('billing', 'orders:read'), 'o-0')).status).toBe(404)
})

it('creates an order with orders:write, in the name of the caller', async () => {
  const response = await write(await tokenOf('billing', 'orders:write'), { key: 'a' })
  const order = (await response.json()) as Order
  expect(response.status).toBe(201)
  expect(response.headers.get('location')).toBe(`/orders/${order.id}`)
  expect(order).toEqual({ ...LAMP, id: expect.any(String), orderedBy: 'billing' })
  expect(book.get(order.id)).toEqual(order)
})

it('creates one order for an identical retry, on whichever instance it arrives', async () => {
  const first = await write(await tokenOf('billing', 'orders:write'), { key: 'b' })
  const before = book.size
  const token = await tokenOf('billing', 'orders:write')
  const second = await write(token, { key: 'b', instance: 1 })
  expect(second.status).toBe(201)
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(await second.text()).toBe(await first.text())
  expect(book.size).toBe(before)
})

it('takes a token for a write once, on all instances together', async () => {
  const token = await tokenOf('billing', 'orders:write')
  expect((await write(token, { key: 'c' })).status).toBe(201)
  expect((await write(token, { key: 'd', instance: 1 })).status).toBe(401)
  expect(events.at(-1)).toMatchObject({ by: 'requireIdempotencyKey', reason: 'token_replayed' })
})

it('answers 400 without a key, or to what is no order', async () => {
  expect((await write(await tokenOf('billing', 'orders:write'))).status).toBe(400)
  const token = await tokenOf('billing', 'orders:write')
  expect((await write(token, { key: 'f', body: { item: 1 } })).status).toBe(400)
})

it('never lets reporting write, whatever its token says', async () => {
  const before = book.size
  const response = await write(await tokenOf('reporting', 'orders:write'), { key: 'g' })
  expect(response.status).toBe(403)
  expect(events.at(-1)).toMatchObject({
    reason: 'permission_missing',
    permission: 'orders:write',
    caller: 'reporting',
  })
  expect(book.size).toBe(before)
})

it('turns away callers that it does not know, and those without a token', async () => {
  expect((await read(await tokenOf('shipping', 'orders:read'))).status).toBe(403)
  expect((await fetch(`${instances[0]?.url}/orders/o-1`)).status).toBe(401)
  expect(events.map((event) => event.outcome)).toEqual(['refused', 'refused'])
})

it('tells nobody what it is made with', async () => {
  const answers = [
    await read(await tokenOf('billing', 'orders:read')),
    await fetch(`${instances[0]?.url}/orders/o-1`),
  ]
  for (const { headers } of answers) expect(headers.get('x-powered-by')).toBeNull()
})

describe('the tracking of an order', () => {
  const track = (headers: Record<string, string>, id = CHAIR.id) =>
    fetch(`${instances[0]?.url}/orders/${id}/tracking`, { headers })
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const service = async (...permissions: string[]) =>
    bearer(await tokenOf('billing', ...permissions))

  it('is shown to a service with orders:read, and to no other', async () => {
    const shown = await track(await service('orders:read'))
    expect(await shown.json()).toMatchObject({ id: CHAIR.id, askedBy: 'service billing' })
    expect((await track(await service('orders:write'))).status).toBe(403)
    expect((await track(await service('orders:read'), 'o-0')).status).toBe(404)
  })

  it('is shown to a user, by either way in which sessions travel', async () => {
    const token = await sessionOf('alice', core)
    for (const headers of [bearer(token), { cookie: `sAccessToken=${token}` }]) {
      const shown = await track(headers)
      expect(await shown.json()).toMatchObject({ id: CHAIR.id, askedBy: 'user alice' })
    }
  })

  it('is shown to nobody who brings both, or nothing', async () => {
    const cookie = `sAccessToken=${await sessionOf('alice', core)}`
    expect((await track({ cookie, ...(await service('orders:read')) })).status).toBe(401)
    expect(events.at(-1)).toMatchObject({ by: 'acceptOneOf', reason: 'credentials_ambiguous' })
    expect((await track({})).status).toBe(401)
    expect(events.at(-1)).toMatchObject({ by: 'acceptOneOf', reason: 'credentials_missing' })
  })

  it('opens nothing else to users', async () => {
    const headers = bearer(await sessionOf('alice', core))
    expect((await fetch(`${instances[0]?.url}/orders/${CHAIR.id}`, { headers })).status).toBe(401)
  })
})

it('never answers an order of glass, and does not do it a second time', async () => {
  const body = { item: 'glass', quantity: 1 }
  const before = book.size
  const first = write(await tokenOf('billing', 'orders:write'), { key: 'h', body })
  await expect(first).rejects.toThrow('fetch failed')
  const retry = await write(await tokenOf('billing', 'orders:write'), { key: 'h', body })
  expect([retry.status, await retry.json()]).toMatchObject([
    409,
    { type: 'urn:express-service-auth:outcome-unknown' },
  ])
  expect(book.size).toBe(before + 1)
})

it('shuts out who is denied while it runs', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const opened = await openStore(redis.url)
  onTestFinished(opened.close)
  const orders = createOrders({
    ...leasedPersistence(opened.store),
    issuer: core.issuer,
    denylist: opened.denylist,
    verifySession,
  })
  await orders.ready()
  const server = await listen(orders.app, 0)
  onTestFinished(() => server.close())
  const status = async () => {
    const authorization = `Bearer ${await tokenOf('billing', 'orders:read')}`
    return (await fetch(`${server.url}/orders/o-0`, { headers: { authorization } })).status
  }
  expect(await status()).toBe(404)
  const target = { issuer: core.issuer, kind: 'caller', value: 'billing' } as const
  const at = Math.floor(Date.now() / 1000)
  await opened.denylist?.deny({ ...target, reason: 'a try', by: 'a test', at, until: null })
  await until('billing is shut out', async () => (await status()) === 403)
  orders.close()
})
