import { compare } from '../compare.js'
import { versionOf } from '../table.js'

const write = (pool) => [{ kind: 'write', pool, status: 201 }]

/** The same writes with the store over node-redis and over ioredis. */
export async function redisClients(bench) {
  const before = () => bench.redis.client.flushdb()
  const few = { requests: write('few'), before }
  await compare(bench, {
    title: 'requireIdempotencyKey over',
    ours: { ...few, label: versionOf('redis'), app: 'idempotentWriteOverNodeRedis' },
    others: [{ ...few, label: versionOf('ioredis'), app: 'idempotentWrite', aim: 0.95 }],
  })
  const fresh = { requests: write('fresh'), before }
  await compare(bench, {
    title: 'requireSingleUse over',
    ours: { ...fresh, label: versionOf('redis'), app: 'singleUseWriteOverNodeRedis' },
    others: [{ ...fresh, label: versionOf('ioredis'), app: 'singleUseWrite', aim: 0.95 }],
  })
}
