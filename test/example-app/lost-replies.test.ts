import { reportOf, serviceFetch, tokenSource } from 'express-service-auth/client'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { startIdentityCore } from '../../example-app/identity-core/identity-core.js'
import { listen } from '../../example-app/listen.js'
import type { Order } from '../../example-app/orders/order.js'
import { createOrders } from '../../example-app/orders/orders.js'
import { leasedPersistence } from '../../example-app/orders/persistence.js'
import { POLICY } from '../../example-app/orders/policy.js'
import { faultOf, isDoneBefore, type ReplyFault, strike } from '../support/network/lost-reply.js'
import { startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.js'
import { MEMORY, REDIS } from '../support/stores/store-factories.js'
import { API_KEY } from './core-client.js'
import { noSessions } from './no-sessions.js'

/** Each lane is a caller with a wire of its own, which calls one after the other. */
const LANES = 25
const CALLS = 20
/** No reply is lost in silence: nothing but a busy machine takes long. */
const PATIENCE_MS = 60_000

/** The orders of the example, which loses a caller's wire while some are written. */
class Book extends Map<string, Order> {
  readonly proxies: TcpProxy[] = []

  override set(id: string, order: Order): this {
    const [, lane, fault] = order.item.split('/')
    if (fault === 'in') this.proxies[Number(lane)]?.cut()
    return super.set(id, order)
  }
}

const core = await startIdentityCore({ apiKey: API_KEY })
afterAll(() => core.close())

function openCaller(proxy: TcpProxy) {
  const tokens = tokenSource({
    core: { baseUrl: core.url, apiKey: API_KEY },
    apiDomain: core.issuer,
    claims: {
      aud: POLICY.audience,
      sub: 'billing',
      source: POLICY.source,
      token_type: POLICY.tokenType,
      permissions: ['orders:write'],
    },
    singleUse: true,
    timeoutMs: PATIENCE_MS,
  })
  let attempts = 0
  // A token is asked for before each attempt: the fault is over when the second one begins.
  const source = {
    ...tokens,
    async token() {
      if (attempts > 0) await proxy.restore()
      attempts += 1
      return tokens.token()
    },
  }
  const origin = `http://127.0.0.1:${proxy.port}`
  const call = serviceFetch(source, {
    origins: [origin],
    idempotencyKey: 'auto',
    deadlineMs: PATIENCE_MS,
    attemptTimeoutMs: PATIENCE_MS,
  })
  return async (item: string, fault: ReplyFault) => {
    attempts = 0
    await strike(proxy, fault)
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ item, quantity: 1 })
    return call(`${origin}/orders`, { method: 'POST', headers, body })
  }
}

describe.each([MEMORY, REDIS])('the example with its store in $name', ({ open }) => {
  it('takes five hundred orders once each, whatever replies are lost', async () => {
    const { store, close } = await open()
    onTestFinished(close)
    const book = new Book()
    const orders = createOrders({
      ...leasedPersistence(store, book),
      issuer: core.issuer,
      verifySession: noSessions,
    })
    await orders.ready()
    const server = await listen(orders.app, 0)
    onTestFinished(() => server.close())
    for (let lane = 0; lane < LANES; lane += 1) {
      const proxy = await startTcpProxy({
        host: '127.0.0.1',
        port: Number(new URL(server.url).port),
      })
      onTestFinished(() => proxy.close())
      book.proxies.push(proxy)
    }

    async function drive(proxy: TcpProxy, lane: number): Promise<void> {
      const order = openCaller(proxy)
      for (let made = 0; made < CALLS; made += 1) {
        const fault = faultOf(made)
        const item = `chair/${lane}/${fault}/${made}`
        const response = await order(item, fault)
        const written = (await response.json()) as Order
        expect([fault, response.status, written.item]).toEqual([fault, 201, item])
        expect(book.get(written.id)).toEqual(written)
        const { replayed } = reportOf(response)
        expect([fault, replayed]).toEqual([fault, isDoneBefore(fault)])
      }
    }
    await Promise.all(book.proxies.map(drive))
    const items = [...book.values()].map(({ item }) => item)
    expect(items).toHaveLength(LANES * CALLS)
    expect(new Set(items).size).toBe(LANES * CALLS)
  }, 240_000)
})
