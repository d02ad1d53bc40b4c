import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { CONSUME, isConsumed } from '../../../../src/stores/redis/store/redis-store.js'
import { sharedRedis } from '../kit.js'

const server = await sharedRedis()

it('the same nonce is told that it was first, however often; another never', async () => {
  const redis = new Redis({ host: server.host, port: server.port })
  onTestFinished(() => redis.disconnect())
  const key = randomUUID()
  const consume = async (nonce: string, ttl: number) =>
    isConsumed(await redis.eval(CONSUME.source, 1, key, nonce, ttl))
  expect(await consume('mine', 60_000)).toBe(true)
  expect(await consume('mine', 60_000)).toBe(true)
  expect(await consume('theirs', 1)).toBe(false)
  expect(await redis.pttl(key)).toBeGreaterThan(50_000)
  expect(await consume('mine', 60_000)).toBe(true)
})

it('a record of another type is neither a first use nor a replay', async () => {
  const redis = new Redis({ host: server.host, port: server.port })
  onTestFinished(() => redis.disconnect())
  const key = randomUUID()
  await redis.rpush(key, 'x')
  await expect(redis.eval(CONSUME.source, 1, key, 'mine', 1000)).rejects.toThrow('WRONGTYPE')
})
