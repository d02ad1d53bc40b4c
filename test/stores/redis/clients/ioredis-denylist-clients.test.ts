import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Cluster, Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { denylistClients } from '../../../../src/stores/redis/clients/ioredis-denylist-clients.js'
import { until } from '../../../support/until.js'
import { denylistOn, ISSUER } from '../denylist/denylist-kit.js'
import { MAJORS, ownRedis, proxyOf } from '../kit.js'

describe.each(MAJORS)('a client of $major', ({ RedisOfRelease, ClusterOfRelease }) => {
  const LAZY = { lazyConnect: true }

  it('keeps credentials and TLS, and never connects again by itself', () => {
    const options = { username: 'app', password: 'secret', tls: { servername: 'redis' }, db: 3 }
    const users = new RedisOfRelease({ ...LAZY, ...options, keyPrefix: 'app:' })
    const made = denylistClients(users, 250).create() as Redis
    expect(made.options).toMatchObject({ ...options, keyPrefix: 'app:', connectTimeout: 250 })
    expect(made.options.retryStrategy?.(1)).toBeNull()
    expect(made.options.failoverDetector).toBe(false)
  })

  it('asks each sentinel first in turn, and listens to them', () => {
    const [a, b, c] = [{ port: 1 }, { port: 2 }, { port: 3 }]
    const sentinels = [a, b, c] as { port: number }[]
    const maker = denylistClients(new RedisOfRelease({ ...LAZY, sentinels, name: 'x' }), 250)
    const made = [1, 2, 3, 4].map(() => maker.create() as Redis)
    expect(made.map(({ options }) => options.sentinels?.[0])).toEqual([a, b, c, a])
    expect(made[0]?.options).toMatchObject({ failoverDetector: true, role: 'master', name: 'x' })
    expect(sentinels).toEqual([a, b, c])
  })

  it('of a cluster keeps credentials and TLS, and asks masters', () => {
    const redisOptions = { password: 'secret', tls: {} }
    const users = new ClusterOfRelease([{ host: 'a', port: 1 }], {
      ...LAZY,
      redisOptions,
      scaleReads: 'slave',
    })
    const { options } = denylistClients(users, 250).create() as Cluster
    expect(options.redisOptions).toMatchObject({ ...redisOptions, connectTimeout: 250 })
    expect(options.scaleReads).toBe('master')
    expect(options.clusterRetryStrategy?.(1)).toBeNull()
  })

  it('bears the name of the user’s', async () => {
    const server = await ownRedis()
    const { port } = server
    await denylistOn(new RedisOfRelease({ ...LAZY, port, connectionName: 'orders' })).ready()
    await until('it is named', async () =>
      (await server.command('CLIENT', 'LIST')).includes('name=orders'),
    )
  })

  it('connects in the context in which the denylist was made', async () => {
    const server = await ownRedis()
    const proxy = await proxyOf(server)
    const context = new AsyncLocalStorage<string>()
    const openedIn: (string | undefined)[] = []
    const note = (message: unknown): void => {
      const { socket } = message as { socket: Socket }
      const name = context.getStore()
      socket.once('connect', () => socket.remotePort === proxy.port && openedIn.push(name))
    }
    subscribe('net.client.socket', note)
    onTestFinished(() => {
      unsubscribe('net.client.socket', note)
    })
    const denylist = context.run('maker', () =>
      denylistOn(new RedisOfRelease({ ...LAZY, port: proxy.port })),
    )
    await context.run('request', async () => {
      denylist.lists(ISSUER)
      await denylist.ready()
      await denylist.entries()
    })
    proxy.cut()
    await until('both are open again', async () => {
      await context.run('request', () => denylist.entries())
      return openedIn.length === 4
    })
    expect(new Set(openedIn)).toEqual(new Set(['maker']))
  })
})
