import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { RedisClientLike, RedisStoreOptions } from 'express-service-auth/redis'
import { expect, it, onTestFinished } from 'vitest'
import { createCompensation } from '../../../src/stores/redis/store/compensation.js'
import { until } from '../../support/until.js'
import { entryOf, ISSUER, openDenylist, PATIENTLY, untilRefused } from './denylist/denylist-kit.js'
import { CHOSEN_LIBRARIES, ownRedis, proxyOf, requestFor, storeOn } from './kit.js'

const LEASE_MS = 200

const context = new AsyncLocalStorage<string>()

/** In which contexts connections to a port are opened from now on. */
function watchConnections(): (port: number) => Set<string | undefined> {
  const opened: { port: number | undefined; name: string | undefined }[] = []
  const note = (message: unknown): void => {
    const { socket } = message as { socket: Socket }
    const name = context.getStore()
    socket.once('connect', () => opened.push({ port: socket.remotePort, name }))
  }
  subscribe('net.client.socket', note)
  onTestFinished(() => {
    unsubscribe('net.client.socket', note)
  })
  return (port) => new Set(opened.filter((each) => each.port === port).map(({ name }) => name))
}

const NO_REPLICA: RedisStoreOptions = { replicas: { min: 1, timeoutMs: 50 } }

type Connect = (port: number) => RedisClientLike
const STORES = CHOSEN_LIBRARIES.flatMap((each): [string, Connect, RedisStoreOptions][] => [
  [each.library, (port) => each.connect({ port }), {}],
  [
    `a cluster of ${each.library} with replicas`,
    (port) => each.connectCluster([{ host: '127.0.0.1', port }]),
    NO_REPLICA,
  ],
])

it.each(STORES)(
  'a store on %s connects, and connects again, in the context in which it was made',
  async (_, connect, options) => {
    const node = await ownRedis({ 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' })
    await node.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    // Clients always take the way through the proxy, in a cluster of one too.
    const proxy = await proxyOf(node)
    await node.command('CONFIG', 'SET', 'cluster-announce-port', String(proxy.port))
    const openedIn = watchConnections()
    const store = context.run('maker', () => storeOn(connect(proxy.port), options))
    /** What requests do, answered or not. */
    const request = () =>
      context.run('request', () =>
        Promise.allSettled([
          store.consume(randomUUID(), 1000),
          store.reserve(requestFor({ leaseMs: LEASE_MS, retentionMs: LEASE_MS })),
          store.check(),
        ]),
      )
    await request()
    const { opened } = proxy
    proxy.cut()
    await request()
    await proxy.fail('accepted and closed')
    await request()
    await proxy.restore()
    await request()
    expect(proxy.opened).toBeGreaterThan(opened)
    expect([...openedIn(proxy.port)]).toEqual(['maker'])
  },
)

it('a denylist polls in the context in which it was made, whoever asks it first', async () => {
  const server = await ownRedis()
  const toldIn = new Set<string | undefined>()
  const note = (): void => void toldIn.add(context.getStore())
  subscribe('express-service-auth:denylist', note)
  onTestFinished(() => void unsubscribe('express-service-auth:denylist', note))
  const denylist = context.run('maker', () => openDenylist(server))
  context.run('request', () => denylist.lists(ISSUER))
  await denylist.ready()
  await openDenylist(server).deny(entryOf(), PATIENTLY)
  await untilRefused(denylist, 'orders')
  expect([...toldIn]).toEqual(['maker'])
})

it('what is to be taken back is tried again in the context in which the store was made', async () => {
  const tried: (string | undefined)[] = []
  const compensation = context.run('maker', () =>
    createCompensation(async () => {
      tried.push(context.getStore())
      if (tried.length < 4) throw new Error('down')
    }),
  )
  onTestFinished(() => compensation.close())
  context.run('request', () => compensation.add('work', 0))
  await until('it is taken back', async () => tried.length === 4)
  expect(new Set(tried)).toEqual(new Set(['maker']))
})
