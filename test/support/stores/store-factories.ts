import { memoryStore, type Store } from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { startRedis } from '../redis/redis.js'
import { LIBRARY } from '../redis/redis-clients.js'

export interface StoreFactory {
  readonly name: string
  open(): Promise<{ store: Store; close(): Promise<void> }>
}

export const MEMORY: StoreFactory = {
  name: 'memory',
  async open() {
    const store = memoryStore()
    return { store, close: async () => store.close() }
  },
}

export const REDIS: StoreFactory = {
  name: 'Redis',
  async open() {
    const server = await startRedis()
    // A long timeout, because the machine may be busy, and these tests are not about timeouts.
    const store = redisStore(LIBRARY.connect({ port: server.port }), { timeoutMs: 5000 })
    return {
      store,
      async close() {
        store.close()
        await server.stop()
      },
    }
  },
}
