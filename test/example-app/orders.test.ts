import { memoryStore } from 'express-service-auth'
import { createTestIssuer, type TestIssuer } from 'express-service-auth/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen, type RunningServer } from '../../example-app/listen.js'
import type { Order } from '../../example-app/orders/order.js'
import { createOrders } from '../../example-app/orders/orders.js'
import { POLICY } from '../../example-app/orders/policy.js'
import { openSessions } from '../../example-app/orders/sessions.js'
import { leasedStorage } from '../../example-app/orders/storage.js'
import { startSignIn } from '../../example-app/story/sign-in.js'
import { knowToken } from '../support/secret-search/index.js'

const CHAIR: Order = { id: 'o-1', item: 'chair', quantity: 4, orderedBy: 'billing' }

const store = memoryStore()
const book = new Map([[CHAIR.id, CHAIR]])
const storage = leasedStorage(store, book)
let issuer: TestIssuer
let signIn: Awaited<ReturnType<typeof startSignIn>>
let verifySession: ReturnType<typeof openSessions>
let orders: RunningServer

beforeAll(async () => {
  issuer = await createTestIssuer()
  signIn = await startSignIn(issuer.url)
  // In no other file that shares a process: the SDK keeps the first core that it is given.
  verifySession = openSessions({ coreUrl: signIn.url, issuer: issuer.url })
  const policy = issuer.policy({ callers: POLICY.callers })
  orders = await listen(createOrders({ policy, storage, verifySession }).app)
})
afterAll(async () => {
  await Promise.all([issuer, signIn, orders].map((server) => server.close()))
  store.close()
})

function tokenOf(caller: string, ...permissions: string[]): string {
  const token = issuer.token({ sub: caller, permissions })
  knowToken(token)
  return token
}

const read = (token: string, path = '/orders/o-1') =>
  fetch(`${orders.url}${path}`, { headers: { authorization: `Bearer ${token}` } })

function write(token: string, { key, body }: { key: string; body: object }) {
  return fetch(`${orders.url}/orders`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
  })
}

it('answers 404 for an order that is not there, and tells nobody what it is made with', async () => {
  const { status, headers } = await read(tokenOf('billing', 'orders:read'), '/orders/o-0')
  expect([status, headers.get('x-powered-by')]).toEqual([404, null])
})

describe('the tracking of an order', () => {
  const track = (headers: Record<string, string>, id = CHAIR.id) =>
    fetch(`${orders.url}/orders/${id}/tracking`, { headers })

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

it('refuses what Postgres cannot keep, wherever orders are', async () => {
  const body = { item: 'a\u0000b', quantity: 1 }
  expect((await write(tokenOf('billing', 'orders:write'), { key: 'c', body })).status).toBe(400)
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
