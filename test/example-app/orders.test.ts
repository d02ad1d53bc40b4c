import type { DecisionEvent, ServiceAuthPolicy } from 'express-service-auth'
import { memoryStore } from 'express-service-auth'
import { createTestIssuer, type TestIssuer } from 'express-service-auth/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { listen, type RunningServer } from '../../example-app/listen.js'
import type { Order } from '../../example-app/orders/order.js'
import { createOrders } from '../../example-app/orders/orders.js'
import { POLICY } from '../../example-app/orders/policy.js'
import { openSessions } from '../../example-app/orders/sessions.js'
import { leasedStorage } from '../../example-app/orders/storage.js'
import { deniedCallers } from '../../example-app/story/denied-callers.js'
import { startSignIn } from '../../example-app/story/sign-in.js'
import { knowToken } from '../support/secret-search/index.js'

const CHAIR: Order = { id: 'o-1', item: 'chair', quantity: 4, orderedBy: 'billing' }
const LAMP = { item: 'lamp', quantity: 2 }

const store = memoryStore()
const book = new Map([[CHAIR.id, CHAIR]])
const storage = leasedStorage(store, book)
let events: DecisionEvent[] = []
let issuer: TestIssuer
let signIn: Awaited<ReturnType<typeof startSignIn>>
let verifySession: ReturnType<typeof openSessions>
let instances: RunningServer[] = []

async function start(changes: Partial<ServiceAuthPolicy> = {}): Promise<RunningServer> {
  const { callers } = POLICY
  const onDecision = (event: DecisionEvent) => events.push(event)
  const policy = issuer.policy({ callers, onDecision, ...changes })
  const orders = createOrders({ policy, storage, verifySession })
  return listen(orders.app)
}

beforeAll(async () => {
  issuer = await createTestIssuer()
  signIn = await startSignIn(issuer.url)
  // In no other file that shares a process: the SDK keeps the first core that it is given.
  verifySession = openSessions({ coreUrl: signIn.url, issuer: issuer.url })
  instances = [await start(), await start()]
})
beforeEach(() => {
  events = []
})
afterAll(async () => {
  await Promise.all([issuer, signIn, ...instances].map((server) => server.close()))
  store.close()
})

function tokenOf(caller: string, ...permissions: string[]): string {
  const token = issuer.token({ sub: caller, permissions })
  knowToken(token)
  return token
}

const read = (token: string, path = '/orders/o-1', { url } = instances[0] as RunningServer) =>
  fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } })

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

it('answers 404 for an order that is not there, and tells nobody what it is made with', async () => {
  const { status, headers } = await read(tokenOf('billing', 'orders:read'), '/orders/o-0')
  expect([status, headers.get('x-powered-by')]).toEqual([404, null])
})

it('creates one order for an identical retry, on whichever instance it arrives', async () => {
  const first = await write(tokenOf('billing', 'orders:write'), { key: 'b' })
  const order = (await first.json()) as Order
  expect(first.headers.get('location')).toBe(`/orders/${order.id}`)
  expect(order).toEqual({ ...LAMP, id: expect.any(String), orderedBy: 'billing' })
  const before = book.size
  const second = await write(tokenOf('billing', 'orders:write'), { key: 'b', instance: 1 })
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  expect(await second.json()).toEqual(order)
  expect(book.size).toBe(before)
})

it('takes a token for a write once, on all instances together', async () => {
  const token = tokenOf('billing', 'orders:write')
  expect((await write(token, { key: 'c' })).status).toBe(201)
  expect((await write(token, { key: 'd', instance: 1 })).status).toBe(401)
  expect(events.at(-1)).toMatchObject({ by: 'requireIdempotencyKey', reason: 'token_replayed' })
})

it('answers 400 without a key, or to what is no order', async () => {
  expect((await write(tokenOf('billing', 'orders:write'))).status).toBe(400)
  const token = tokenOf('billing', 'orders:write')
  expect((await write(token, { key: 'f', body: { item: 1 } })).status).toBe(400)
})

it('never lets reporting write, whatever its token says', async () => {
  const before = book.size
  expect((await write(tokenOf('reporting', 'orders:write'), { key: 'g' })).status).toBe(403)
  expect((await read(tokenOf('reporting', 'orders:read'))).status).toBe(200)
  expect(book.size).toBe(before)
})

describe('the tracking of an order', () => {
  const track = (headers: Record<string, string>, id = CHAIR.id) =>
    fetch(`${instances[0]?.url}/orders/${id}/tracking`, { headers })

  it('is shown to a user with a session, and to nobody with a broken one', async () => {
    const session = signIn.sessionOf('alice')
    knowToken(session)
    const shown = await track({ cookie: `sAccessToken=${session}` })
    expect(await shown.json()).toMatchObject({ askedBy: 'user alice' })
    expect((await track({ cookie: `sAccessToken=${session}` }, 'o-0')).status).toBe(404)
    expect((await track({ cookie: `sAccessToken=${session.slice(0, -4)}AAAA` })).status).toBe(401)
  })

  it('is shown to a service with orders:read, and to no other', async () => {
    const service = (...permissions: string[]) =>
      track({ authorization: `Bearer ${tokenOf('billing', ...permissions)}` })
    expect(await (await service('orders:read')).json()).toMatchObject({
      askedBy: 'service billing',
    })
    expect((await service('orders:write')).status).toBe(403)
  })
})

it('never answers an order of glass, and does not do it a second time', async () => {
  const body = { item: 'glass', quantity: 1 }
  const before = book.size
  const first = write(tokenOf('billing', 'orders:write'), { key: 'h', body })
  await expect(first).rejects.toThrow('fetch failed')
  const retry = await write(tokenOf('billing', 'orders:write'), { key: 'h', body })
  expect([retry.status, await retry.json()]).toMatchObject([
    409,
    { type: 'urn:express-service-auth:outcome-unknown' },
  ])
  expect(book.size).toBe(before + 1)
})

it('shuts out who is denied while it runs', async () => {
  const { callers, denylist } = deniedCallers()
  const server = await start({ denylist })
  onTestFinished(() => server.close())
  const status = async () =>
    (await read(tokenOf('billing', 'orders:read'), undefined, server)).status
  expect(await status()).toBe(200)
  callers.add('billing')
  expect(await status()).toBe(403)
  callers.clear()
  expect(await status()).toBe(200)
})
