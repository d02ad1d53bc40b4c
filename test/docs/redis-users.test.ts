import { redisDenylist } from 'express-service-auth/redis'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { runHere } from '../cli/kit.js'
import { entryOf, ISSUER, PATIENTLY } from '../stores/redis/denylist/denylist-kit.js'
import { begin, requestFor, retryOf, storeOn } from '../stores/redis/kit.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { startCluster } from '../support/redis/redis-cluster.js'
import { readDocument } from './documents.js'

const PASSWORD = 'password-of-the-user'
const page = await readDocument('docs/operations.md')

/** What the page gives a user. */
function rulesOf(user: string): readonly string[] {
  const rules = new RegExp(`^ACL SETUSER ${user} (on .*)$`, 'm').exec(page)?.[1]
  if (rules === undefined) throw new Error(`no line for ${user}`)
  return rules.replace('>PASSWORD', `>${PASSWORD}`).split(' ')
}

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Connects as the user who has the documented rights without one. */
async function clientOf(name: string, without = ''): Promise<Redis> {
  const username = `${name}${without}`
  const rules = rulesOf(name).filter((rule) => rule !== without)
  await server.command('ACL', 'SETUSER', username, 'reset', ...rules)
  const { host, port } = server
  return new Redis({ host, port, lazyConnect: true, username, password: PASSWORD })
}

function denylistOn(redis: Redis | Cluster, options = {}) {
  const denylist = redisDenylist(redis, { name: 'a-receiver', ...options })
  onTestFinished(() => denylist.close())
  return denylist
}

/** Does everything that a store and a denylist do. */
async function expectToWork(redis: Redis | Cluster): Promise<void> {
  const store = storeOn(redis, { timeoutMs: 5000 })
  expect(await store.check()).toEqual([])
  expect(await store.consume('a-token', 1000)).toBe(true)
  const request = requestFor({ recordId: 'a-key' })
  const run = await begin(store, request)
  expect(await store.renew(run)).toBe(true)
  expect(await store.settle(run, { type: 'released' })).toBe(true)
  await begin(store, retryOf(request))
  expect(await store.inspect('a-key')).toMatchObject({ state: 'running' })
  const denylist = denylistOn(redis)
  await denylist.ready()
  expect(denylist.health()).toMatchObject({ state: 'fresh' })
  const names = async () => (await denylist.receivers(PATIENTLY)).map(({ name }) => name)
  await expect.poll(names).toContain('a-receiver')
}

describe('a receiver with the documented rights', () => {
  it('has all that it needs', async () => {
    await expectToWork(await clientOf('receiver'))
  })

  it('has all that it needs in a cluster', async () => {
    const cluster = await startCluster()
    onTestFinished(() => cluster.stop())
    const rules = [...rulesOf('receiver'), '+cluster|slots', '+cluster|info']
    const nodes = [...cluster.masters, ...cluster.replicas]
    await Promise.all(nodes.map((node) => node.command('ACL', 'SETUSER', 'receiver', ...rules)))
    const redisOptions = { username: 'receiver', password: PASSWORD }
    const startup = [...cluster.startupNodes]
    await expectToWork(new Cluster(startup, { lazyConnect: true, redisOptions }))
  })

  it.each(['+eval', '+evalsha', '+time', '+get', '+hgetall', '+hset', '+hdel'])(
    'is not ready with a denylist that it may not use: %s',
    async (right) => {
      const denylist = denylistOn(await clientOf('receiver', right))
      const message = `does not let the user run ${right.slice(1).toUpperCase()}`
      await expect(denylist.ready()).rejects.toMatchObject({
        code: 'unfit',
        message: expect.stringContaining(message),
      })
    },
  )

  it('is not ready with a denylist under a prefix of somebody else', async () => {
    const denylist = denylistOn(await clientOf('receiver'), { prefix: 'other:' })
    await expect(denylist.ready()).rejects.toMatchObject({
      code: 'unfit',
      message: expect.stringContaining('access keys that begin with "other:"'),
    })
  })
})

it('lets an operator with the documented rights check, deny, list and allow', async () => {
  const redis = await clientOf('operator')
  const env = { REDIS_URL: `redis://operator:${PASSWORD}@${server.host}:${server.port}` }
  const checked = await runHere(['check-store', '--json'], { env })
  expect([checked.stderr, checked.exitCode]).toEqual(['', 0])
  const denylist = denylistOn(redis)
  const entry = entryOf()
  await denylist.deny(entry, PATIENTLY)
  await denylist.deny([entry, entryOf({ value: 'another' })], PATIENTLY)
  expect(await denylist.entries(PATIENTLY)).toHaveLength(2)
  for (const value of ['orders', 'another']) {
    await denylist.allow({ issuer: ISSUER, kind: 'caller', value }, PATIENTLY)
  }
  expect((await runHere(['denylist', '--json'], { env })).exitCode).toBe(1)
})
