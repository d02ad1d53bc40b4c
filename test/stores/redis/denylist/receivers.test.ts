import express, { type RequestHandler } from 'express'
import { requireIdempotencyKey } from 'express-service-auth'
import type { RedisStoreOptions } from 'express-service-auth/redis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../../../support/issuer/test-issuer.js'
import type { Receiver } from '../../../support/receiver/open-receiver.js'
import { authFor, startReceiver } from '../../../support/receiver/receiver.js'
import { UNAVAILABLE } from '../../../support/receiver/refusal-bytes.js'
import { type RedisServer, startRedis } from '../../../support/redis/redis.js'
import { startReplica } from '../../../support/redis/redis-replica.js'
import { until } from '../../../support/until.js'
import { openStore } from '../kit.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const LEASE_SECONDS = 2

async function own(config: Record<string, string> = {}): Promise<RedisServer> {
  const redis = await startRedis({ config })
  onTestFinished(() => redis.stop())
  return redis
}

/** A receiver whose handler counts its runs. */
async function startOrders(redis: RedisServer, options: RedisStoreOptions = {}): Promise<Receiver> {
  const { store } = openStore(redis, options)
  const create: RequestHandler = (_request, response) => {
    response.status(201).json({ ok: true })
  }
  const key = { store, leaseSeconds: LEASE_SECONDS, operation: 'create' }
  const receiver = await startReceiver({
    express,
    mount: (app) => app.use(authFor(issuer.policy()), express.json(), requireIdempotencyKey(key)),
    handler: create,
  })
  await until('the store answers', async () => (await post(receiver, crypto.randomUUID())) === 201)
  return receiver
}

async function post(receiver: Receiver, key: string): Promise<number> {
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: '{"item":1}' }
  return (await receiver.call(issuer.token(), init)).status
}

const rawPost = (receiver: Receiver): Promise<string> =>
  receiver.raw({
    method: 'POST',
    headers: [`Authorization: Bearer ${issuer.token()}`, `Idempotency-Key: ${crypto.randomUUID()}`],
  })

describe('a write behind a key on Redis', () => {
  it('is refused with 503 while Redis hangs, and a retry runs it within the lease', async () => {
    const redis = await own()
    const receiver = await startOrders(redis)
    const runs = receiver.handled
    const keys = Array.from({ length: 20 }, () => crypto.randomUUID())
    redis.pause()
    const statuses = await Promise.all(keys.map((key) => post(receiver, key)))
    expect(new Set(statuses)).toEqual(new Set([503]))
    expect(await rawPost(receiver)).toBe(UNAVAILABLE)
    expect(receiver.handled).toBe(runs)
    redis.resume()
    const resumedAt = performance.now()
    await Promise.all(
      keys.map((key) => until('the retry runs', async () => (await post(receiver, key)) === 201)),
    )
    expect(performance.now() - resumedAt).toBeLessThan(LEASE_SECONDS * 1000)
    expect(receiver.handled).toBe(runs + keys.length)
    expect(receiver.errors).toEqual([])
  })

  it('is refused with 503 without replicas, and a retry runs it within the lease', async () => {
    const primary = await own()
    const replica = await startReplica(primary)
    onTestFinished(() => replica.stop())
    const receiver = await startOrders(primary, { replicas: { min: 1, timeoutMs: 100 } })
    const runs = receiver.handled
    const key = crypto.randomUUID()
    replica.pause()
    onTestFinished(() => replica.resume())
    expect(await post(receiver, key)).toBe(503)
    expect(receiver.handled).toBe(runs)
    replica.resume()
    const resumedAt = performance.now()
    await until('the retry runs', async () => (await post(receiver, key)) === 201)
    expect(performance.now() - resumedAt).toBeLessThan(LEASE_SECONDS * 1000)
    expect(receiver.handled).toBe(runs + 1)
  })

  it('runs once when Redis restarts with its data between two attempts', async () => {
    const redis = await own({ appendonly: 'yes', appendfsync: 'always' })
    const receiver = await startOrders(redis)
    const runs = receiver.handled
    const key = crypto.randomUUID()
    expect(await post(receiver, key)).toBe(201)
    await redis.kill()
    expect(await post(receiver, key)).toBe(503)
    await redis.restart()
    await until('Redis is back', async () => (await post(receiver, key)) === 201)
    expect(receiver.handled).toBe(runs + 1)
  })
})
