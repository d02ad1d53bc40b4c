import { describe, expect, it } from 'vitest'
import { nodeRedisOptions } from '../../../src/cli/redis/redis-library.js'

describe('the location of Redis, for node-redis', () => {
  it('is a URL with the options beside it', () => {
    const target = {
      kind: 'url',
      url: 'rediss://h/3',
      options: { tls: { servername: 'x' } },
    } as const
    const socket = { servername: 'x', tls: true }
    expect(nodeRedisOptions(target).options).toEqual({ url: 'rediss://h/3', socket })
  })

  it('is a server, by the names of ioredis', () => {
    const options = {
      host: 'h',
      port: '7000',
      username: 'app',
      password: 'p',
      db: '2',
      connectionName: 'orders',
      keyPrefix: 'a:',
      tls: {},
    }
    expect(nodeRedisOptions({ kind: 'options', options })).toEqual({
      options: {
        socket: { host: 'h', port: 7000, tls: true },
        username: 'app',
        password: 'p',
        database: 2,
        name: 'orders',
        keyPrefix: 'a:',
      },
    })
  })

  it('is a cluster, whose options are those of all nodes', () => {
    const nodes = ['redis://a:1', { host: 'b', port: 2 }, { host: 'c' }]
    const options = { redisOptions: { password: 'p' }, keyPrefix: 'a:' }
    expect(nodeRedisOptions({ kind: 'cluster', nodes, options }).cluster).toEqual({
      rootNodes: [
        { url: 'redis://a:1' },
        { socket: { host: 'b', port: 2 } },
        { socket: { host: 'c', port: 6379 } },
      ],
      defaults: { password: 'p', socket: {} },
      keyPrefix: 'a:',
    })
  })

  it.each([
    ['sentinels', { kind: 'options', options: { sentinels: [{ host: 'a' }], name: 'x' } }],
    ['an option of ioredis alone', { kind: 'options', options: { host: 'a', lazyConnect: true } }],
    ['a query', { kind: 'url', url: 'redis://h?db=3', options: {} }],
  ] as const)('with %s is an error that says what it needs', (_, target) => {
    expect(() => nodeRedisOptions(target)).toThrow(/needs ioredis or iovalkey; redis is installed/)
  })
})
