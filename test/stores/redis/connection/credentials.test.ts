import { randomUUID } from 'node:crypto'
import type { RedisClientLike } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisServer } from '../../../support/redis/redis.js'
import { setLogin } from '../../../support/redis/redis-clients.js'
import { type RedisCluster, startCluster } from '../../../support/redis/redis-cluster.js'
import { startReplica } from '../../../support/redis/redis-replica.js'
import { startSentinel } from '../../../support/redis/redis-sentinel.js'
import { succeeds, until } from '../../../support/until.js'
import { denylistOn, entryOf } from '../denylist/denylist-kit.js'
import {
  answers,
  CHOSEN_LIBRARIES,
  MAJORS,
  ownRedis,
  sharedRedis,
  started,
  storeOn,
} from '../kit.js'

interface Login {
  readonly username: string
  readonly password: string
}

const OLD: Login = { username: 'app', password: 'the-first-secret' }
const RENEWED: Login = { username: 'app', password: 'the-second-secret' }
const RENAMED: Login = { username: 'app-2', password: 'the-third-secret' }

const permit = (server: Pick<RedisServer, 'command'>, { username, password }: Login) =>
  server.command('ACL', 'SETUSER', username, 'reset', 'on', `>${password}`, '~*', '&*', '+@all')

const server = await sharedRedis()
let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

/** Ends the old login and all its connections. */
async function replaceLogin(
  server: Pick<RedisServer, 'command'>,
  before: Login,
  after: Login,
): Promise<void> {
  await permit(server, after)
  if (after.username !== before.username) await server.command('ACL', 'DELUSER', before.username)
  else await server.command('CLIENT', 'KILL', 'USER', before.username)
}

/** A store and a denylist on the user's client; both have connected. */
async function openBoth(users: RedisClientLike, replicas?: number) {
  const store = storeOn(
    users,
    replicas === undefined ? {} : { replicas: { min: replicas, timeoutMs: 1000 } },
  )
  const denylist = denylistOn(users)
  await until('the store answers', () => answers(store))
  await denylist.ready()
  const deny = () => denylist.deny(entryOf({ kind: 'token', value: randomUUID() }))
  await deny()
  return {
    async expectRecovery(): Promise<void> {
      await until('the store answers', () => answers(store))
      await until('the store is fit', () => succeeds(store.check()))
      await until('the denylist is read', async () => denylist.health().lastError === undefined)
      const { version } = await deny()
      await until('the denylist is current', async () => denylist.health().version === version)
    },
  }
}

describe.each(CHOSEN_LIBRARIES)(
  'own connections log in as the user’s client does ($library)',
  ({ connect, connectCluster }) => {
    it.each([
      ['another password', RENEWED],
      ['another user', RENAMED],
    ])('with %s', async (_, next) => {
      await permit(server, OLD)
      const users = connect({ port: server.port, ...OLD })
      const both = await openBoth(users)
      await replaceLogin(server, OLD, next)
      setLogin(users, next)
      await both.expectRecovery()
    })

    it('once the user’s client has the password that the server has had for a while', async () => {
      const server = await ownRedis({ requirepass: OLD.password })
      const admin = new Redis({ port: server.port, password: OLD.password })
      onTestFinished(() => admin.disconnect())
      const { password } = OLD
      const users = connect({ port: server.port, password })
      const both = await openBoth(users)
      await admin.config('SET', 'requirepass', RENEWED.password)
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal')
      await expect(storeOn(users).check()).rejects.toThrow(/WRONGPASS|NOAUTH/)
      setLogin(users, { password: RENEWED.password })
      await both.expectRecovery()
    })

    it('where reservations wait for a replica', async () => {
      const server = await ownRedis()
      await started(startReplica(server))
      await permit(server, OLD)
      const users = connect({ port: server.port, ...OLD })
      const both = await openBoth(users, 1)
      await replaceLogin(server, OLD, RENEWED)
      setLogin(users, { password: RENEWED.password })
      await both.expectRecovery()
    })

    it.each([
      ['to every node', 3],
      ['to one node', 1],
    ])('in a cluster that cuts the connections %s', async (_, cut) => {
      const nodes = [...cluster.masters, ...cluster.replicas]
      await Promise.all(nodes.map((node) => permit(node, OLD)))
      const users = connectCluster(cluster.startupNodes, OLD)
      const both = await openBoth(users)
      setLogin(users, RENEWED)
      await Promise.all(nodes.map((node) => permit(node, RENEWED)))
      const toCut = cut === 1 ? cluster.masters.slice(0, 1) : nodes
      await Promise.all(toCut.map((node) => node.command('CLIENT', 'KILL', 'USER', OLD.username)))
      await both.expectRecovery()
    })
  },
)

it.each(MAJORS)(
  'own connections log in as the user’s client does, behind sentinels too ($major)',
  async ({ RedisOfRelease }) => {
    const sentinels = await started(startSentinel())
    const asked = sentinels.sentinels.map(({ port }) => {
      const client = new Redis({ port })
      onTestFinished(() => client.disconnect())
      return {
        command: async (name: string, ...words: string[]) => String(await client.call(name, words)),
      }
    })
    const all = [...asked, sentinels.primary, ...sentinels.replicas]
    await Promise.all(all.map((server) => permit(server, OLD)))
    const users = new RedisOfRelease({
      name: sentinels.name,
      sentinels: [...sentinels.sentinels],
      sentinelUsername: OLD.username,
      sentinelPassword: OLD.password,
      lazyConnect: true,
      ...OLD,
    })
    const both = await openBoth(users)
    await Promise.all(all.map((server) => replaceLogin(server, OLD, RENEWED)))
    Object.assign(users.options, RENEWED, { sentinelPassword: RENEWED.password })
    await both.expectRecovery()
  },
)
