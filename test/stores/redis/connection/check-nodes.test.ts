import { inspect } from 'node:util'
import { ServiceAuthError } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { TRY_COMMANDS } from '../../../../src/stores/redis/connection/check-nodes.js'
import { UNDO_RESERVE } from '../../../../src/stores/redis/store/compensation.js'
import { RENEW, RESERVE, SETTLE } from '../../../../src/stores/redis/store/idempotency-scripts.js'
import { INSPECT, RESOLVE } from '../../../../src/stores/redis/store/record-access.js'
import { CONSUME } from '../../../../src/stores/redis/store/redis-store.js'
import type { RedisConfig } from '../../../support/redis/redis.js'
import { startReplica } from '../../../support/redis/redis-replica.js'
import {
  CHOSEN_LIBRARIES,
  openAs,
  openStore,
  ownRedis,
  proxyOf,
  requestFor,
  sharedRedis,
  started,
  storeOn,
  timed,
} from '../kit.js'

const server = await sharedRedis()

/** What a check rejects with. */
async function faultOf(check: Promise<readonly string[]>): Promise<ServiceAuthError> {
  const { error } = await timed(check)
  if (!(error instanceof ServiceAuthError)) throw new Error(`not rejected so: ${error}`)
  return error
}

const commandsIn = (source: string): string[] =>
  [...source.matchAll(/redis\.p?call\('([A-Z]+)'/g)].map(([, name]) => String(name))

describe('store.check', () => {
  it('resolves for a server that is fit, whatever it writes to disk', async () => {
    await expect(openStore(server).store.check()).resolves.toEqual([])
    const durable = await ownRedis({ appendonly: 'yes' })
    await expect(openStore(durable).store.check()).resolves.toEqual([])
  })

  it('names a server that is down, and its address', async () => {
    const redis = await ownRedis()
    await redis.kill()
    const { ms, error } = await timed(openStore(redis).store.check())
    expect(error).toBeInstanceOf(ServiceAuthError)
    expect(error).toMatchObject({ name: 'ServiceAuthError', code: 'unavailable' })
    expect(error?.message).toMatch(/unreachable.*ECONNREFUSED/)
    expect(error?.message).toContain(String(redis.port))
    expect(ms).toBeLessThan(1000)
  })

  it('does not wait for a server that hangs', async () => {
    const redis = await ownRedis()
    const { store } = openStore(redis)
    await store.check()
    redis.pause()
    const { ms, error } = await timed(store.check())
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(error?.message).toContain('unreachable')
    expect(ms).toBeLessThan(1000)
    redis.resume()
  })

  it('names each eviction policy', async () => {
    const redis = await ownRedis({ maxmemory: '100mb' })
    for (const policy of ['allkeys-lru', 'volatile-lru', 'volatile-ttl', 'allkeys-random']) {
      await redis.command('CONFIG', 'SET', 'maxmemory-policy', policy)
      const fault = await faultOf(openStore(redis).store.check())
      expect(fault.code).toBe('unfit')
      expect(fault.message).toContain(`may evict keys: maxmemory-policy is ${policy}`)
    }
  })

  it('names a read-only replica', async () => {
    const primary = await ownRedis()
    const replica = await started(startReplica(primary))
    const fault = await faultOf(openStore(replica).store.check())
    expect(fault.code).toBe('unfit')
    expect(fault.message).toContain('read-only replica')
  })

  it('names a cluster that is down', async () => {
    const redis = await ownRedis({ 'cluster-enabled': 'yes' })
    const fault = await faultOf(openStore(redis).store.check())
    expect(fault.code).toBe('unavailable')
    expect(fault.message).toContain('cluster is down')
  })

  it('warns of a user who may not run INFO', async () => {
    const { store } = await openAs(server, '-info')
    const [warning, ...others] = await store.check()
    expect(warning).toContain('does not let the user run INFO')
    expect(others).toEqual([])
  })

  it.each(['role', 'maxmemory_policy', 'loading'])(
    'warns of a server that leaves %s out of INFO, as some managed services do',
    async (field) => {
      const proxy = await proxyOf(server)
      proxy.blank(`\n${field}:`)
      const [warning, ...others] = await openStore(proxy).store.check()
      expect(warning).toContain(`leaves ${field.replace('_', '-')} out of INFO: not checked`)
      expect(others).toEqual([])
    },
  )

  it.each([
    ['-evalsha', 'run EVALSHA'],
    ['-eval', 'run EVAL'],
    ['-set', 'run SET in scripts'],
    ['-get', 'run GET in scripts'],
    ['-pexpire', 'run PEXPIRE in scripts'],
    ['-pttl', 'run PTTL in scripts'],
    ['-del', 'run DEL in scripts'],
    ['-time', 'run TIME in scripts'],
    ['resetkeys ~other:*', 'access keys that begin with "esa:"'],
  ])('names the right that a user with %s lacks', async (rule, right) => {
    const { store } = await openAs(server, rule)
    const fault = await faultOf(store.check())
    expect(fault.code).toBe('unfit')
    expect(fault.message).toContain(`does not let the user ${right}`)
  })

  it('names WAIT only where the store waits for replicas', async () => {
    const { store } = await openAs(server, '-wait')
    await expect(store.check()).resolves.toEqual([])
    const waiting = await openAs(server, '-wait', { replicas: { min: 1, timeoutMs: 50 } })
    const fault = await faultOf(waiting.store.check())
    expect(fault).toMatchObject({ code: 'unfit' })
    expect(fault.message).toContain('does not let the user run WAIT')
  })

  it('tries each command that a script of the store runs', () => {
    const store = [RESERVE, RENEW, SETTLE, UNDO_RESERVE, INSPECT, RESOLVE, CONSUME]
    const used = store.flatMap(({ source }) => commandsIn(source))
    const tried = [...TRY_COMMANDS.source.matchAll(/\{ '([A-Z]+)'/g)].map(([, name]) => name)
    expect(new Set(used)).toEqual(new Set(tried))
  })

  it('outlives a connection that breaks meanwhile', async () => {
    const proxy = await proxyOf(server)
    const { store } = openStore(proxy, { timeoutMs: 2000 })
    await store.check()
    proxy.loseReply()
    await expect(store.check()).resolves.toEqual([])
    expect(proxy.opened).toBe(2)
  })
})

describe('what a store rejects with', () => {
  const LEAKY: [string, RedisConfig][] = [
    ['the password is wrong', { requirepass: 'the-right-one' }],
    ['Redis quotes the password', { requirepass: 'x', 'rename-command': 'AUTH NOT-AUTH' }],
    ['Redis quotes a call', { 'rename-command': ['EVALSHA NOT-EVALSHA', 'INFO NOT-INFO'] }],
    ['Redis is full', { maxmemory: '1' }],
  ]
  const cases = CHOSEN_LIBRARIES.flatMap((library) =>
    LEAKY.map(([when, config]) => ({ when, config, ...library })),
  )

  it.each(cases)('holds no secret when $when ($library)', async ({ config, connect }) => {
    const redis = await ownRedis(config)
    const password = 'requirepass' in config ? { password: 'a-secret-password' } : {}
    const store = storeOn(connect({ port: redis.port, ...password }))
    const request = requestFor({ recordId: 'a-secret-key', fingerprint: 'a-secret-body' })
    const asked = [
      store.consume('a-secret-token', 1000),
      store.reserve(request),
      store.settle({ ...request, fence: 1 }, { type: 'finished', result: Buffer.from('a-secret') }),
    ]
    if (config['maxmemory'] === undefined) asked.push(store.check() as Promise<never>)
    for (const { error } of await Promise.all(asked.map((work) => timed<unknown>(work)))) {
      expect(error).toBeInstanceOf(Error)
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('a-secret')
    }
  })
})
