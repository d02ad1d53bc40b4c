import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { TestIssuer } from 'express-service-auth/testing'
import { expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { startRedis } from '../support/redis/redis.js'
import { until } from '../support/until.js'
import { type Running, run } from './run.js'

const AT_ONCE = { ORDERS_SERVE_ON_MS: '0' }

/** The receiver in a process of its own, and what its probes say. */
async function startOrders(env: Record<string, string>) {
  const running: Running = await run('orders/main.ts', [], { ...AT_ONCE, ...env })
  onTestFinished(() => void running.child.kill('SIGKILL'))
  const url = /http:\S+/.exec(await running.printed('(store: '))?.[0]
  const probe = async (path: string) => {
    const response = await fetch(`${url}${path}`)
    return { status: response.status, body: (await response.json()) as { phase: string } }
  }
  return {
    ...running,
    url,
    probe,
    /** The status of the answer to an order, with a token of the core. */
    async order(core: TestIssuer) {
      const token = core.token({ permissions: ['orders:write'] })
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ item: 'lamp', quantity: 1 })
      const init = { method: 'POST', headers: { ...headers, 'idempotency-key': 'a' }, body }
      return (await fetch(`${url}/orders`, init)).status
    },
    isReady: () => until('orders is ready', async () => (await probe('/readyz')).status === 200),
    isStopping: () =>
      until('orders stops', async () => (await probe('/readyz')).body.phase === 'stopping'),
  }
}

async function openCore() {
  const core = await createTestIssuer()
  onTestFinished(() => core.close())
  return core
}

async function openRedis() {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  return redis
}

it('is alive and not ready without the core, and ready as soon as the core is there', async () => {
  const core = await openCore()
  core.down()
  const orders = await startOrders({ ISSUER: core.url })
  const complained = once(orders.child.stderr as Readable, 'data')
  expect(await orders.probe('/livez')).toEqual({ status: 200, body: { phase: 'starting' } })
  expect(await orders.probe('/readyz')).toMatchObject({
    status: 503,
    body: { phase: 'starting', keySet: { state: 'cold' }, store: { state: 'unused' } },
  })
  await complained
  core.up()
  await orders.isReady()
  expect((await orders.probe('/readyz')).body).toMatchObject({
    phase: 'ready',
    keySet: { state: 'fresh' },
  })
  orders.child.kill('SIGTERM')
  const { code, stderr } = await orders.finished
  expect(code).toBe(0)
  expect(stderr).toMatch(/^(not ready: the key set at .+ could not be fetched.+\n)+$/)
})

it('stays ready when Redis and the core go away', async () => {
  const redis = await openRedis()
  const core = await openCore()
  const orders = await startOrders({ ISSUER: core.url, REDIS_URL: redis.url })
  await orders.isReady()
  core.down()
  await redis.kill()
  expect(await orders.order(core)).toBe(503)
  expect(await orders.probe('/readyz')).toMatchObject({
    status: 200,
    body: { phase: 'ready', store: { state: 'down' }, denylists: [{ state: expect.any(String) }] },
  })
  expect((await orders.probe('/livez')).status).toBe(200)
  orders.child.kill('SIGTERM')
  expect((await orders.finished).code).toBe(0)
})

it('is not ready before it knows who is denied, and writes once Redis is there', async () => {
  const redis = await openRedis()
  await redis.kill()
  const core = await openCore()
  const orders = await startOrders({ ISSUER: core.url, REDIS_URL: redis.url })
  expect(await orders.probe('/readyz')).toMatchObject({
    status: 503,
    body: { store: { state: 'down' }, denylists: [{ state: 'cold' }] },
  })
  await redis.restart()
  await orders.isReady()
  await until('a write is taken', async () => (await orders.order(core)) === 201)
  orders.child.kill('SIGTERM')
  const { code, stderr } = await orders.finished
  expect(code).toBe(0)
  expect(stderr).toMatch(
    /^orders: Redis at .+ cannot serve: .+\n(not ready: the denylist could not be read: .+\n)*$/,
  )
})

it('is alive and not ready while it stops, and goes on serving', async () => {
  const core = await openCore()
  const orders = await startOrders({ ISSUER: core.url, ORDERS_SERVE_ON_MS: '8000' })
  await orders.isReady()
  orders.child.kill('SIGTERM')
  await orders.isStopping()
  expect((await orders.probe('/readyz')).status).toBe(503)
  expect(await orders.probe('/livez')).toEqual({ status: 200, body: { phase: 'stopping' } })
  const read = await fetch(`${orders.url}/orders/o-0`, {
    headers: { authorization: `Bearer ${core.token({ permissions: ['orders:read'] })}` },
  })
  expect([read.status, read.headers.get('connection')]).toEqual([404, 'close'])
  expect((await orders.finished).code).toBe(0)
})
