// The clients that redisStore takes, and those that it must not take: of ioredis 6, iovalkey 0.4 and
// node-redis 6, and of ioredis 5, iovalkey 0.3 and node-redis 5 in the variant of Express 4.
import { redisStore } from 'express-service-auth/redis'
import { Cluster, Redis } from 'ioredis'
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey'
import { createClient, createCluster } from 'redis'
import { createClient as createClient4 } from 'redis4'

const nodes = [{ host: '127.0.0.1', port: 7000 }]

redisStore(new Redis())
redisStore(new Cluster(nodes))
redisStore(new Valkey())
redisStore(new ValkeyCluster(nodes))
redisStore(createClient())
redisStore(createClient({ RESP: 2, commandOptions: { timeout: 5 }, scripts: {} }))
redisStore(createCluster({ rootNodes: nodes.map((socket) => ({ socket })) }))

const store = redisStore(new Redis(), { prefix: 'orders:', timeoutMs: 500 })
export const warnings: Promise<readonly string[]> = store.check()
export const closed: Promise<void> | void = store.close()

// @ts-expect-error a client is required
redisStore()
// @ts-expect-error an address is not a client
redisStore('redis://127.0.0.1:6379')
// @ts-expect-error node-redis 4 is too old
redisStore(createClient4())
// @ts-expect-error another object
redisStore({ get: async () => null, set: async () => 'OK' })
// @ts-expect-error a prefix is a string
redisStore(new Redis(), { prefix: 7 })
// @ts-expect-error an unknown option
redisStore(new Redis(), { keyPrefix: 'orders:' })
