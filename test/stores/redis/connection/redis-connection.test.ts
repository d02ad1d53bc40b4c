import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { TcpProxy } from '../../../support/network/tcp-proxy.js'
import type { RedisConfig, RedisServer } from '../../../support/redis/redis.js'
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
async function expectRefusals(store: Store, message: RegExp): Promise<void> {
  const run = { ...requestFor(), fence: 1 }
  const asked = [
    store.consume(randomUUID(), 1000),
    store.reserve(requestFor()),
    store.renew(run),
    store.settle(run, { type: 'finished', result: Buffer.from('x') }),
  ]
  for (const { ms, error } of await Promise.all(asked.map((work) => timed<unknown>(work)))) {
    expect(error?.message).toMatch(message)
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

it('a slow reply is waited for as long as the bound allows', async () => {
  const { proxy, store } = await proxied()
  proxy.delayReplies(300)
  expect(await store.consume(randomUUID(), 60_000)).toBe(true)
})

it('waits are bounded while Redis is down, and it serves when it is back with and without its data', async () => {
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

interface State {
  readonly config?: RedisConfig
  /** Brings the server into the state. Resolves with what ends it. */
  begin(redis: RedisServer): Promise<() => Promise<unknown>>
  readonly refusal: RegExp
}

const UNREADY: Record<string, State> = {
  'a read-only replica, and is promoted': {
    async begin(redis) {
      await redis.command('REPLICAOF', server.host, String(server.port))
      return () => redis.command('REPLICAOF', 'NO', 'ONE')
    },
    refusal: /READONLY/,
  },
  'cut off from its replicas': {
    async begin(redis) {
      await redis.command('CONFIG', 'SET', 'min-replicas-to-write', '1')
      return () => redis.command('CONFIG', 'SET', 'min-replicas-to-write', '0')
    },
    refusal: /NOREPLICAS/,
  },
  'loading its data': {
    config: { 'enable-debug-command': 'yes', 'loading-process-events-interval-bytes': '1024' },
    async begin(redis) {
      await redis.command('DEBUG', 'POPULATE', '5000')
      await redis.command('CONFIG', 'SET', 'key-load-delay', '300')
      const reloading = redis.command('DEBUG', 'RELOAD')
      await until('it is loading', async () =>
        (await redis.command('INFO', 'persistence')).includes('loading:1'),
      )
      return () => reloading
    },
    refusal: /LOADING/,
  },
  'a node of a cluster that is down': {
    config: { 'cluster-enabled': 'yes' },
    begin: async (redis) => () => redis.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383'),
    refusal: /CLUSTERDOWN/,
  },
}

it.each(Object.entries(UNREADY))(
  'a call is repeated until its deadline while Redis is %s',
  async (_, { config = {}, begin, refusal }) => {
    const redis = await ownRedis(config)
    const { store } = openStore(redis, { timeoutMs: TIMEOUT_MS })
    const { store: patient } = openStore(redis, { timeoutMs: 20_000 })
    await answers(store)
    const end = await begin(redis)
    await expectRefusals(store, refusal)
    const used = patient.consume(randomUUID(), 60_000)
    await sleep(TIMEOUT_MS)
    await end()
    expect(await used).toBe(true)
  },
  40_000,
)

it('a server that is out of memory can still free a key', async () => {
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

it('what the event loop is too busy to read in time is no silence', async () => {
  const { store } = openStore(server, { timeoutMs: 100 })
  await until('the store has connected', () => answers(store))
  const used = store.consume(randomUUID(), 1000)
  await new Promise((resolve) => setImmediate(resolve))
  const busyUntil = performance.now() + 300
  while (performance.now() < busyUntil);
  expect(await used).toBe(true)
})

it('commands of one turn leave together', async () => {
  const chunks: Buffer[] = []
  const front = createServer((client) => {
    const inner = connect(server.port, server.host)
    client.on('data', (chunk) => chunks.push(chunk))
    pipeline(client, inner, client, () => {})
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  onTestFinished(() => void front.close())
  const { port } = front.address() as AddressInfo
  const { store } = openStore({ host: '127.0.0.1', port }, { timeoutMs: 5000 })
  const consumeMany = () =>
    Promise.all(Array.from({ length: 50 }, () => store.consume(randomUUID(), 1000)))
  await consumeMany()
  await consumeMany()
  chunks.length = 0
  await consumeMany()
  expect(chunks).toHaveLength(1)
})
