// The clients that redisStore takes, and those that it must not take: of ioredis 6, and of ioredis 5
// in the variant of Express 4.
import { redisStore } from 'express-service-auth/redis'
import { Cluster, Redis } from 'ioredis'

const nodes = [{ host: '127.0.0.1', port: 7000 }]

redisStore(new Redis())
redisStore(new Cluster(nodes))

const store = redisStore(new Redis(), { prefix: 'orders:', timeoutMs: 500 })
export const warnings: Promise<readonly string[]> = store.check()
export const closed: Promise<void> | void = store.close()

// @ts-expect-error a client is required
redisStore()
// @ts-expect-error an address is not a client
redisStore('redis://127.0.0.1:6379')
// @ts-expect-error node-redis is not ioredis
redisStore({ get: async () => null, set: async () => 'OK' })
// @ts-expect-error a prefix is a string
redisStore(new Redis(), { prefix: 7 })
// @ts-expect-error an unknown option
redisStore(new Redis(), { keyPrefix: 'orders:' })
