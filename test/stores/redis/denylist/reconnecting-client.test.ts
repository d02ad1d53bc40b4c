import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createClientFactory } from '../../../../src/stores/redis/denylist/reconnecting-client.js'
import { startTcpProxy } from '../../../support/network/tcp-proxy.js'
import { startRedis } from '../../../support/redis/redis.js'
import { until } from '../../../support/until.js'
import { denylistOn, ISSUER } from './denylist-kit.js'

describe.each([
  ['ioredis 6', Redis, Cluster],
  ['ioredis 5', Redis5 as unknown as typeof Redis, Cluster5 as unknown as typeof Cluster],
])('a client of %s', (_, RedisOfRelease, ClusterOfRelease) => {
  const LAZY = { lazyConnect: true }

  it('keeps credentials and TLS, and never connects again by itself', () => {
    const options = { username: 'app', password: 'secret', tls: { servername: 'redis' }, db: 3 }
    const users = new RedisOfRelease({ ...LAZY, ...options, keyPrefix: 'app:' })
    const made = createClientFactory(users, 250).create() as Redis
    expect(made.options).toMatchObject({ ...options, keyPrefix: 'app:', connectTimeout: 250 })
    expect(made.options.retryStrategy?.(1)).toBeNull()
    expect(made.options.failoverDetector).toBe(false)
  })

  it('asks each sentinel first in turn, and listens to them', () => {
    const [a, b, c] = [{ port: 1 }, { port: 2 }, { port: 3 }]
    const sentinels = [a, b, c] as { port: number }[]
    const maker = createClientFactory(new RedisOfRelease({ ...LAZY, sentinels, name: 'x' }), 250)
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
    const { options } = createClientFactory(users, 250).create() as Cluster
    expect(options.redisOptions).toMatchObject({ ...redisOptions, connectTimeout: 250 })
    expect(options.scaleReads).toBe('master')
    expect(options.clusterRetryStrategy?.(1)).toBeNull()
  })

  it('bears the name of the user’s', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const { port } = server
    await denylistOn(new RedisOfRelease({ ...LAZY, port, connectionName: 'orders' })).ready()
    await until('it is named', async () =>
      (await server.command('CLIENT', 'LIST')).includes('name=orders'),
    )
  })

  it('connects in the context in which the denylist was made', async () => {
    const server = await startRedis()
    const proxy = await startTcpProxy(server)
    onTestFinished(async () => {
      await proxy.close()
      await server.stop()
    })
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

it('a password is in no message', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  await server.command('ACL', 'SETUSER', 'default', 'on', '>right')
  const password = 'a wrong password'
  const denylist = denylistOn(new Redis({ port: server.port, password, lazyConnect: true }))
  const errors = await Promise.all(
    [denylist.ready(), denylist.entries()].map((each) => each.catch((error) => error)),
  )
  for (const error of errors) {
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(error.message).not.toContain(password)
    expect(error).not.toHaveProperty('cause')
  }
})
