import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis.js'
import { startReplica } from '../../support/redis-replica.js'
import { openStore, timed } from './kit.js'

async function own(config: Record<string, string> = {}): Promise<RedisServer> {
  const started = await startRedis({ config })
  onTestFinished(() => started.stop())
  return started
}

describe('store.check', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
    return () => server.stop()
  })

  test('resolves for a server that is fit, whatever it writes to disk', async () => {
    await expect(openStore(server).store.check()).resolves.toBeUndefined()
    const durable = await own({ appendonly: 'yes' })
    await expect(openStore(durable).store.check()).resolves.toBeUndefined()
  })

  test('names a server that is down, and its address', async () => {
    const redis = await own()
    await redis.kill()
    const { ms, error } = await timed(openStore(redis).store.check())
    expect(error?.message).toMatch(/out of reach.*ECONNREFUSED/)
    expect(error?.message).toContain(String(redis.port))
    expect(ms).toBeLessThan(1000)
  })

  test('does not wait for a server that hangs', async () => {
    const redis = await own()
    const { store } = openStore(redis)
    await store.check()
    redis.pause()
    const { ms, error } = await timed(store.check())
    expect(error?.message).toContain('out of reach')
    expect(ms).toBeLessThan(1000)
    redis.resume()
  })

  test.each(['allkeys-lru', 'volatile-lru', 'volatile-ttl', 'allkeys-random'])(
    'names the eviction policy %s',
    async (policy) => {
      const redis = await own({ maxmemory: '100mb', 'maxmemory-policy': policy })
      await expect(openStore(redis).store.check()).rejects.toThrow(
        `may evict keys: maxmemory-policy is ${policy}`,
      )
    },
  )

  test('names a read-only replica', async () => {
    const primary = await own()
    const replica = await startReplica(primary)
    onTestFinished(() => replica.stop())
    await expect(openStore(replica).store.check()).rejects.toThrow('read-only replica')
  })

  test('names a cluster that is down', async () => {
    const redis = await own({ 'cluster-enabled': 'yes' })
    await expect(openStore(redis).store.check()).rejects.toThrow('cluster is down')
  })

  test('names what the server says, and no password', async () => {
    const redis = await own({ requirepass: 'the-right-one' })
    const { store } = openStore(redis, {}, { password: 'a-secret' })
    const { error } = await timed(store.check())
    expect(error?.message).toMatch(/WRONGPASS/)
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('a-secret')
  })

  test('names a user of Redis who may not ask', async () => {
    const redis = await own()
    await redis.command('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '+@all', '-info')
    const { store } = openStore(redis, {}, { username: 'limited', password: 'secret' })
    await expect(store.check()).rejects.toThrow('NOPERM')
  })
})
