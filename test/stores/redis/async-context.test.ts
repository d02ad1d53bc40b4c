import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Store } from 'express-service-auth'
import type { RedisClientLike, RedisStoreOptions } from 'express-service-auth/redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createCompensation } from '../../../src/stores/redis/store/compensation.js'
import { until } from '../../support/until.js'
import { CHOSEN_LIBRARIES, ownRedis, proxyOf, requestFor, storeOn } from './kit.js'

const LEASE_MS = 200

interface Context {
  readonly name: string
}
const context = new AsyncLocalStorage<Context>()
const inMaker = <T>(make: () => T): T => context.run({ name: 'maker' }, make)

/** In which contexts connections to a port are opened from now on. */
function watchConnections(): (port: number) => Set<string | undefined> {
  const opened: { port: number | undefined; name: string | undefined }[] = []
  const note = (message: unknown): void => {
    const { socket } = message as { socket: Socket }
    const name = context.getStore()?.name
    socket.once('connect', () => opened.push({ port: socket.remotePort, name }))
  }
  subscribe('net.client.socket', note)
  onTestFinished(() => {
    unsubscribe('net.client.socket', note)
  })
  return (port) => new Set(opened.filter((each) => each.port === port).map(({ name }) => name))
}

/** A node whose clients always take the way through the proxy, in a cluster of one too. */
async function proxied() {
  const node = await ownRedis({ 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' })
  await node.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  const proxy = await proxyOf(node)
  await node.command('CONFIG', 'SET', 'cluster-announce-port', String(proxy.port))
  return proxy
}

const nodes = (port: number): { host: string; port: number }[] => [{ host: '127.0.0.1', port }]
const NO_REPLICA: RedisStoreOptions = { replicas: { min: 1, timeoutMs: 50 } }

type Connect = (port: number) => RedisClientLike
const STORES = CHOSEN_LIBRARIES.flatMap(
  ({ library, ...libraryOf }): [string, Connect, RedisStoreOptions][] => {
    const connect: Connect = (port) => libraryOf.connect({ port })
    const connectCluster: Connect = (port) => libraryOf.connectCluster(nodes(port))
    return [
      [library, connect, {}],
      [`a cluster of ${library} with replicas`, connectCluster, NO_REPLICA],
    ]
  },
)

/** What requests do, answered or not. */
async function use(store: Store): Promise<void> {
  const request = requestFor({ leaseMs: LEASE_MS, retentionMs: LEASE_MS })
  await Promise.allSettled([
    store.consume(randomUUID(), 1000),
    store.reserve(request),
    store.renew({ ...request, fence: 1 }),
    store.check(),
  ])
}

describe.each(STORES)('a store on %s', (_, connect, options) => {
  it('connects, and connects again, in the context in which it was made', async () => {
    const proxy = await proxied()
    const openedIn = watchConnections()
    const store = inMaker(() => storeOn(connect(proxy.port), options))
    const request = (): Promise<void> => context.run({ name: 'request' }, () => use(store))
    await request()
    const opened = proxy.opened
    proxy.cut()
    await request()
    await proxy.fail('accepted and closed')
    await request()
    await proxy.restore()
    await request()
    expect(proxy.opened).toBeGreaterThan(opened)
    expect([...openedIn(proxy.port)]).toEqual(['maker'])
  })
})

describe('what is to be taken back', () => {
  it('is tried again in the context in which the store was made', async () => {
    const tried: (string | undefined)[] = []
    const compensation = inMaker(() =>
      createCompensation(async () => {
        tried.push(context.getStore()?.name)
        if (tried.length < 4) throw new Error('down')
      }),
    )
    onTestFinished(() => compensation.close())
    context.run({ name: 'request' }, () => compensation.add('work', 0))
    await until('it is taken back', async () => tried.length === 4)
    expect(new Set(tried)).toEqual(new Set(['maker']))
  })
})
