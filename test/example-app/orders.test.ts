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

it('answers 404 for an order that is not there, and tells nobody what it is made with', async () => {
  const authorization = `Bearer ${tokenOf('billing', 'orders:read')}`
  const { status, headers } = await fetch(`${orders.url}/orders/o-0`, {
    headers: { authorization },
  })
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
  const response = await fetch(`${orders.url}/orders`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${tokenOf('billing', 'orders:write')}`,
      'content-type': 'application/json',
      'idempotency-key': 'c',
    },
    body: JSON.stringify({ item: 'a\u0000b', quantity: 1 }),
  })
  expect(response.status).toBe(400)
})
