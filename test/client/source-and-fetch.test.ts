import express from 'express'
import { memoryStore, requireIdempotencyKey, serviceAuth } from 'express-service-auth'
import {
  type CoreTokenSource,
  type ServiceFetchOptions,
  serviceFetch,
} from 'express-service-auth/client'
import { afterAll, describe, expect, it } from 'vitest'
import { startIdentityCore } from '../support/core/identity-core/identity-core.js'
import { manualClock } from '../support/manual-clock.js'
import { startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.js'
import { openReceiver, type Receiver } from '../support/receiver/open-receiver.js'
import { knowSecret } from '../support/secret-search/index.js'
import { API_DOMAIN, API_KEY } from './claims.js'
import { failure, sourceAt, type WhenFinished } from './kit.js'

const core = await startIdentityCore({ apiKey: API_KEY })
afterAll(() => core.close())

interface Orders extends Receiver {
  /** What each order has been done, by its path. */
  readonly effects: ReadonlyMap<string, number>
}

const EVERYBODY = ['billing']

/** Writes that count, behind the middleware of a service that trusts the core. */
async function startOrders(whenFinished: WhenFinished): Promise<Orders> {
  const store = memoryStore()
  const effects = new Map<string, number>()
  const auth = serviceAuth({
    issuer: API_DOMAIN,
    jwksUri: `${core.issuer}/auth/jwt/jwks.json`,
    audience: 'orders',
    source: 'microservice',
    tokenType: 'service-access',
    callers: EVERYBODY,
  })
  const receiver = await openReceiver({
    express,
    mount: (app) => void app.use(auth),
    route: (app, counted) => app.post('/orders/:id', requireIdempotencyKey({ store }), counted),
    handler(request, response) {
      const count = (effects.get(request.path) ?? 0) + 1
      effects.set(request.path, count)
      response.status(201).json({ order: request.path, count })
    },
  })
  whenFinished(async () => {
    auth.close()
    store.close()
    await receiver.close()
  })
  return Object.assign(receiver, { effects })
}

/** A wire to the core, on which it can be slow or unreachable. */
async function wireToCore(
  whenFinished: WhenFinished,
): Promise<TcpProxy & { readonly url: string }> {
  const { hostname: host, port } = new URL(core.url)
  const proxy = await startTcpProxy({ host, port: Number(port) })
  whenFinished(() => proxy.close())
  return Object.assign(proxy, { url: `http://127.0.0.1:${proxy.port}` })
}

type Caller = (path: string) => Promise<Response>

function callerOf(
  source: CoreTokenSource,
  url: string,
  options: Partial<ServiceFetchOptions> = {},
): Caller {
  const call = serviceFetch(source, { origins: [url], idempotencyKey: 'auto', ...options })
  return (path) => call(`${url}${path}`, { method: 'POST' })
}

/** So many calls at a time, until all are made. */
async function each<T>(count: number, atOnce: number, work: (index: number) => Promise<T>) {
  const results: T[] = []
  let next = 0
  const lane = async () => {
    while (next < count) {
      const index = next
      next += 1
      results[index] = await work(index)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return results
}

const statusesOf = (responses: readonly Response[]) =>
  new Set(responses.map(({ status }) => status))
const VALIDITY_SECONDS = 300
const YESTERDAYS_KEY = 'the-key-of-yesterday'
knowSecret('an API key', YESTERDAYS_KEY)

describe.concurrent('a source of tokens and serviceFetch together', () => {
  it('signing key and API key rotate under load, and no call is refused', async ({
    onTestFinished,
  }) => {
    const orders = await startOrders(onTestFinished)
    const clock = manualClock()
    // The core's key stays; what is rotated is the one that the function gives at first.
    let keys: string[] = []
    const apiKey = () => keys.shift() ?? API_KEY
    const source = sourceAt(core.url, { apiKey, clock }, onTestFinished)
    const call = callerOf(source, orders.url)
    for (const round of ['first', 'second', 'third']) {
      keys = [YESTERDAYS_KEY]
      clock.advance(VALIDITY_SECONDS)
      const calls = each(40, 10, (index) => call(`/orders/${round}-${index}`))
      // Once: for keys that it does not know, a receiver fetches a key set only so often.
      if (round === 'second') await core.rotate()
      expect(statusesOf(await calls)).toEqual(new Set([201]))
      expect(keys).toEqual([])
    }
    expect([...orders.effects.values()]).toEqual(Array(120).fill(1))
  })

  it('a core that is unreachable disturbs nobody while the token serves', async ({
    expect,
    onTestFinished,
  }) => {
    const orders = await startOrders(onTestFinished)
    const wire = await wireToCore(onTestFinished)
    const clock = manualClock()
    const source = sourceAt(wire.url, { clock }, onTestFinished)
    const call = callerOf(source, orders.url)
    expect((await call('/orders/first')).status).toBe(201)
    wire.hold()
    clock.advance(0.85 * VALIDITY_SECONDS)
    const during = await each(50, 10, (index) => call(`/orders/${index}`))
    expect(statusesOf(during)).toEqual(new Set([201]))
    await wire.fail('accepted and closed')
    await expect.poll(() => source.health().lastError).toBe('core_unreachable')
    clock.advance(0.15 * VALIDITY_SECONDS)
    // A call that finds no token at its last attempt fails with the source's error; nothing is sent.
    const hurried = callerOf(source, orders.url, { maxAttempts: 1 })
    await expect(hurried('/orders/late')).rejects.toMatchObject({
      code: 'token',
      cause: failure('core_unreachable'),
    })
    await wire.restore()
    wire.release()
    clock.advance(60)
    expect((await call('/orders/late')).status).toBe(201)
    expect(orders.effects.get('/orders/late')).toBe(1)
  })
})
