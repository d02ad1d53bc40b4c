import { randomUUID } from 'node:crypto'
import type { Store } from 'express-service-auth'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { TcpProxy } from '../../../support/network/tcp-proxy.js'
import { startReplica } from '../../../support/redis/redis-replica.js'
import { until } from '../../../support/until.js'
import {
  answers,
  begin,
  openStore,
  ownRedis,
  proxyOf,
  requestFor,
  retryOf,
  sharedRedis,
  started,
  timed,
} from '../kit.js'

const TIMEOUT_MS = 250
/** What a busy machine may add to a wait. */
const SLACK_MS = 400

const server = await sharedRedis()

async function proxied(timeoutMs = 2000): Promise<{ proxy: TcpProxy; store: Store }> {
  const proxy = await proxyOf(server)
  const { store } = openStore(proxy, { timeoutMs })
  await until('the store has connected', () => answers(store))
  return { proxy, store }
}

/** Every function rejects within its bound. */
async function expectRefusals(store: Store, message?: RegExp): Promise<void> {
  const run = { ...requestFor(), fence: 1 }
  const asked = [
    store.consume(randomUUID(), 1000),
    store.reserve(requestFor()),
    store.renew(run),
    store.settle(run, { type: 'finished', result: Buffer.from('x') }),
  ]
  for (const { ms, error } of await Promise.all(asked.map((work) => timed<unknown>(work)))) {
    expect(error).toBeInstanceOf(Error)
    if (message !== undefined) expect(error?.message).toMatch(message)
    expect(ms).toBeLessThan(TIMEOUT_MS + SLACK_MS)
  }
}

describe('a reply that is lost on the wire', () => {
  it('is recognised as one’s own for a token, which then is consumed', async () => {
    const { proxy, store } = await proxied()
    const id = randomUUID()
    proxy.loseReply()
    expect(await store.consume(id, 60_000)).toBe(true)
    expect(proxy.opened).toBe(2)
    expect(await store.consume(id, 60_000)).toBe(false)
  })

  it('is recognised as one’s own for a reservation', async () => {
    const { proxy, store } = await proxied()
    const request = requestFor()
    await begin(store, requestFor())
    proxy.loseReply('reserved')
    const run = await begin(store, request)
    expect(proxy.opened).toBe(2)
    expect((await store.reserve(retryOf(request))).outcome).toBe('running')
    proxy.loseReply()
    expect(await store.renew(run)).toBe(true)
    proxy.loseReply()
    expect(await store.settle(run, { type: 'finished', result: Buffer.from('x') })).toBe(true)
    expect(proxy.opened).toBe(4)
  })

  it('is recognised by each of a hundred that were under way', async () => {
    const { proxy, store } = await proxied()
    const ids = Array.from({ length: 100 }, () => randomUUID())
    proxy.loseReply()
    const uses = await Promise.all(ids.map((id) => store.consume(id, 60_000)))
    expect(uses.every((isFirst) => isFirst)).toBe(true)
  })
})

describe('a wire that is slow or cut', () => {
  it('is waited for as long as the bound allows', async () => {
    const { proxy, store } = await proxied()
    proxy.delayReplies(300)
    expect(await store.consume(randomUUID(), 60_000)).toBe(true)
  })

  it('is replaced by a new one when it is cut, without anybody noticing', async () => {
    const { proxy, store } = await proxied()
    for (let cuts = 0; cuts < 3; cuts++) {
      proxy.cut()
      expect(await store.consume(randomUUID(), 60_000)).toBe(true)
    }
  })

  it('is given up when nothing comes back on it, and replaced', async () => {
    const { proxy, store } = await proxied(TIMEOUT_MS)
    proxy.hold()
    await expect(store.consume(randomUUID(), 60_000)).rejects.toThrow('Redis')
    await until('a new connection is tried', async () => proxy.opened > 1)
    proxy.release()
    await until('the store answers', () => answers(store))
  })
})

describe('waits are bounded, and the store comes back by itself', () => {
  it('while Redis is down, and when it is back with and without its data', async () => {
    const redis = await ownRedis({ appendonly: 'yes', appendfsync: 'always' })
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    await until('the store has connected', () => answers(store))
    const id = randomUUID()
    const request = requestFor()
    expect(await store.consume(id, 60_000)).toBe(true)
    const run = await begin(store, request)
    await redis.kill()
    await expectRefusals(store, /unreachable|no reply/)
    await redis.restart()
    await until('the store answers', () => answers(store))
    expect(await store.consume(id, 60_000)).toBe(false)
    expect((await store.reserve(retryOf(request))).outcome).toBe('running')
    await redis.restart({ keepData: false })
    await until('the store answers', () => answers(store))
    expect(await store.renew(run)).toBe(true)
    expect((await store.reserve(retryOf(request))).outcome).toBe('running')
  })

  it('when Redis was down from the start', async () => {
    const redis = await ownRedis()
    await redis.kill()
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    await expectRefusals(store, /unreachable/)
    await redis.restart()
    await until('the store answers', () => answers(store))
  })

  it('while Redis is paused', async () => {
    const redis = await ownRedis()
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    await until('the store has connected', () => answers(store))
    redis.pause()
    await expectRefusals(store)
    await expectRefusals(store)
    redis.resume()
    await until('the store answers', () => answers(store))
  })

  it('and what is answered after it was given up harms nobody', async () => {
    const redis = await ownRedis()
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    onTestFinished(() => void process.off('unhandledRejection', unhandled))
    await until('the store has connected', () => answers(store))
    await redis.command('SCRIPT', 'FLUSH')
    await redis.command('CLIENT', 'PAUSE', String(2 * TIMEOUT_MS))
    const asked = Array.from({ length: 20 }, () => timed(store.consume(randomUUID(), 1000)))
    for (const { error } of await Promise.all(asked)) expect(error).toBeInstanceOf(Error)
    await until('the store answers', () => answers(store))
    redis.pause()
    await expectRefusals(store)
    // Longer than the connection is trusted with nothing coming back on it.
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS + 2500))
    redis.resume()
    await until('the store answers', () => answers(store))
    expect(unhandled).not.toHaveBeenCalled()
  })

  it('while Redis is a read-only replica', async () => {
    const redis = await ownRedis()
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    await until('the store has connected', () => answers(store))
    await redis.command('REPLICAOF', server.host, String(server.port))
    await expectRefusals(store)
    await redis.command('REPLICAOF', 'NO', 'ONE')
    await until('the store answers', () => answers(store))
  })

  it('while Redis is out of memory, where a key can still be freed', async () => {
    const redis = await ownRedis()
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    const request = requestFor()
    const run = await begin(store, request)
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    await expectRefusals(store, /OOM/)
    expect(await store.renew(run)).toBe(true)
    expect(await store.settle(run, { type: 'released' })).toBe(true)
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    await begin(store, retryOf(request))
  })

  it('while Redis is loading its data', async () => {
    const redis = await ownRedis({
      'enable-debug-command': 'yes',
      'loading-process-events-interval-bytes': '1024',
    })
    await redis.command('DEBUG', 'POPULATE', '2000')
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    await store.consume(randomUUID(), 60_000)
    await redis.command('CONFIG', 'SET', 'key-load-delay', '1000')
    const reloading = redis.command('DEBUG', 'RELOAD')
    await until('it is loading', async () =>
      (await redis.command('INFO', 'persistence')).includes('loading:1'),
    )
    await expectRefusals(store, /LOADING/)
    await reloading
    await until('the store answers', () => answers(store))
  })

  it('while somebody else’s script blocks Redis', async () => {
    const redis = await ownRedis({ 'busy-reply-threshold': '50' })
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    await until('the store has connected', () => answers(store))
    const blocking = redis.command('EVAL', 'while true do end', '0').catch(() => {})
    await until('it is busy', () =>
      redis.command('PING').then(
        () => false,
        (error: Error) => error.message.includes('BUSY'),
      ),
    )
    await expectRefusals(store, /BUSY/)
    await redis.command('SCRIPT', 'KILL')
    await blocking
    await until('the store answers', () => answers(store))
  })

  it('while a cluster’s node says that the cluster is down', async () => {
    const redis = await ownRedis({ 'cluster-enabled': 'yes' })
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    await expectRefusals(store, /CLUSTERDOWN/)
    await redis.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await until('the store answers', () => answers(store))
  })
})

it('what the event loop is too busy to read in time is no silence', async () => {
  const { store } = openStore(server, { timeoutMs: 100 })
  await until('the store has connected', () => answers(store))
  const used = store.consume(randomUUID(), 1000)
  await new Promise((resolve) => setImmediate(resolve))
  const busyUntil = performance.now() + 300
  while (performance.now() < busyUntil);
  expect(await used).toBe(true)
})

it('a replica that is promoted serves', async () => {
  const primary = await ownRedis()
  const replica = await started(startReplica(primary))
  const { store } = openStore(replica, { timeoutMs: TIMEOUT_MS })
  await expectRefusals(store, /READONLY|Redis/)
  await replica.command('REPLICAOF', 'NO', 'ONE')
  await until('the store answers', () => answers(store))
})
