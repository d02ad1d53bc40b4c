import { memoryStore } from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { StartError } from '../start-error.js'

/**
 * The store behind single use and idempotency: Redis, which every instance shares, or this
 * process's memory when there is no address.
 * @throws {StartError} when the address is malformed or the server unfit or out of reach
 */
export async function openStore(redisUrl: string | undefined) {
  if (redisUrl === undefined) {
    const store = memoryStore()
    return { store, name: 'memory', close: store.close }
  }
  const { host } = parseRedisUrl(redisUrl)
  const redis = new Redis(redisUrl)
  // The store reports what fails; without a listener ioredis prints every lost connection.
  redis.on('error', () => undefined)
  const store = redisStore(redis)
  const close = () => {
    store.close()
    redis.disconnect()
  }
  try {
    await store.check()
  } catch (error) {
    close()
    throw new StartError(`Redis at ${host} cannot serve: ${(error as Error).message}`)
  }
  return { store, name: `Redis at ${host}`, close }
}

/** Never quotes the address: it may hold a password. */
function parseRedisUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isRedis = /^rediss?:$/.test(url?.protocol ?? '')
  if (url && isRedis && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname)) return url
  throw new StartError('REDIS_URL must be an address such as redis://localhost:6379/0')
}
