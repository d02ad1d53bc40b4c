import { readFile } from 'node:fs/promises'
import { redisDenylist, redisStore } from 'express-service-auth/redis'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { runHere } from '../cli/kit.js'
import { entryOf, ISSUER, PATIENTLY } from '../stores/redis/denylist/denylist-kit.js'
import { begin, requestFor, retryOf, storeOn } from '../stores/redis/kit.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { startCluster } from '../support/redis/redis-cluster.js'
import { ROOT } from './blocks.js'

const PASSWORD = 'password-of-the-user'
const lines = [
  ...(await readFile(`${ROOT}docs/operations.md`, 'utf8')).matchAll(/^ACL SETUSER.*$/gm),
]
const rulesOf = (user: string): string[] => {
  const line = lines.map(([text]) => text).find((text) => text.startsWith(`ACL SETUSER ${user} on`))
  if (line === undefined) throw new Error(`no line for ${user}`)
  return line.replace('>PASSWORD', `>${PASSWORD}`).split(' ').slice(2)
}

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Makes the user who has the documented rights without some, and returns the client's options. */
async function loginOf(name: string, without: readonly string[] = []) {
  const [, ...rules] = rulesOf(name)
  const user = `${name}-${without.join('')}`
  const kept = rules.filter((rule) => !without.includes(rule))
  await server.command('ACL', 'SETUSER', user, 'reset', ...kept)
  return { username: user, password: PASSWORD }
}

async function clientOf(name: string, without: readonly string[] = []): Promise<Redis> {
  const { host, port } = server
  return new Redis({ host, port, lazyConnect: true, ...(await loginOf(name, without)) } as object)
}

const commandsOf = (name: string): string[] => rulesOf(name).filter((rule) => rule.startsWith('+'))

describe('a receiver with the documented rights', () => {
  it('does everything that a store does', async () => {
    const store = storeOn(await clientOf('receiver'))
    expect(await store.check()).toEqual([])
    expect(await store.consume('a-token', 1000)).toBe(true)
    const request = requestFor({ recordId: 'a-key' })
    const run = await begin(store, request)
    expect(await store.renew(run)).toBe(true)
    expect(await store.settle(run, { type: 'released' })).toBe(true)
    await begin(store, retryOf(request))
    expect(await store.inspect('a-key')).toMatchObject({ state: 'running' })
  })

  it('reads the denylist and reports', async () => {
    const denylist = redisDenylist(await clientOf('receiver'), { name: 'a-receiver' })
    onTestFinished(() => denylist.close())
    await denylist.ready()
    expect(denylist.health()).toMatchObject({ state: 'fresh' })
    await expect
      .poll(async () => (await denylist.receivers(PATIENTLY)).map(({ name }) => name))
      .toContain('a-receiver')
  })

  const optional = ['+ping', '+hgetall', '+hset', '+hdel']
  it.each(commandsOf('receiver').filter((right) => !optional.includes(right)))(
    'is told by check() that %s is missing',
    async (right) => {
      const store = redisStore(await clientOf('receiver', [right]))
      onTestFinished(() => store.close())
      const said = await store.check().then(
        (warnings) => warnings.join(),
        (error: Error) => error.message,
      )
      expect(said).toContain(`does not let the user run ${right.slice(1).toUpperCase()}`)
    },
  )

  // Each right that a receiver uses: its denylist needs these.
  it.each(['+eval', '+evalsha', '+time', '+get', '+hgetall', '+hset', '+hdel'])(
    'is not ready with a denylist that it may not use: %s',
    async (right) => {
      const denylist = redisDenylist(await clientOf('receiver', [right]))
      onTestFinished(() => denylist.close())
      await expect(denylist.ready()).rejects.toMatchObject({
        code: 'unfit',
        message: expect.stringContaining(
          `does not let the user run ${right.slice(1).toUpperCase()}`,
        ),
      })
    },
  )

  it('is not ready with a denylist under a prefix of somebody else', async () => {
    const denylist = redisDenylist(await clientOf('receiver'), { prefix: 'other:' })
    onTestFinished(() => denylist.close())
    await expect(denylist.ready()).rejects.toMatchObject({
      code: 'unfit',
      message: expect.stringContaining('access keys that begin with "other:"'),
    })
  })
})

describe('a receiver of a cluster with the documented rights', () => {
  it('does everything that a store and a denylist do', async () => {
    const cluster = await startCluster()
    onTestFinished(() => cluster.stop())
    const [, ...rules] = rulesOf('receiver')
    const rights = [...rules, '+cluster|slots', '+cluster|info']
    const nodes = [...cluster.masters, ...cluster.replicas]
    await Promise.all(nodes.map((node) => node.command('ACL', 'SETUSER', 'receiver', ...rights)))
    const redisOptions = { username: 'receiver', password: PASSWORD }
    const redis = new Cluster([...cluster.startupNodes], { lazyConnect: true, redisOptions })
    const store = storeOn(redis, { timeoutMs: 5000 })
    expect(await store.check()).toEqual([])
    expect(await store.consume('a-token', 1000)).toBe(true)
    const run = await begin(store, requestFor({ recordId: 'a-key' }))
    expect(await store.renew(run)).toBe(true)
    expect(await store.settle(run, { type: 'released' })).toBe(true)
    const denylist = redisDenylist(redis, { name: 'a-receiver' })
    onTestFinished(() => denylist.close())
    await denylist.ready()
    expect(denylist.health()).toMatchObject({ state: 'fresh' })
  })
})

describe('an operator with the documented rights', () => {
  const env = async () => {
    const { username, password } = await loginOf('operator')
    return { REDIS_URL: `redis://${username}:${password}@${server.host}:${server.port}` }
  }
  const serviceAuth = async (...argv: string[]) =>
    runHere([...argv, '--json'], { env: await env() })

  it('checks the store', async () => {
    const ran = await serviceAuth('check-store')
    expect([ran.stderr, ran.exitCode]).toEqual(['', 0])
  })

  it('denies, lists and allows', async () => {
    const denylist = redisDenylist(await clientOf('operator'))
    onTestFinished(() => denylist.close())
    const entry = entryOf()
    await denylist.deny(entry, PATIENTLY)
    await denylist.deny([entry, entryOf({ value: 'another' })], PATIENTLY)
    expect(await denylist.entries(PATIENTLY)).toHaveLength(2)
    for (const value of ['orders', 'another']) {
      await denylist.allow({ issuer: ISSUER, kind: 'caller', value }, PATIENTLY)
    }
    expect((await serviceAuth('denylist')).exitCode).toBe(1)
  })
})
