import { memoryStore, ServiceAuthError } from 'express-service-auth'
import { redisDenylist, redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { StartError } from '../start-error.js'

interface OpenOptions {
  /** Milliseconds for which the store waits for Redis. Default: that of `redisStore`. */
  readonly timeoutMs?: number
  readonly warn?: (warning: string) => void
  readonly goOnWithout?: ((complaint: string) => void) | undefined
}

/**
 * The store behind single use and idempotency: Redis, which every instance shares, or this
 * process's memory when there is no address. With Redis there is a denylist, too. `warn` gets the warnings of
 * the store's check, `goOnWithout` a server that is unreachable.
 * @throws {StartError} when the address is malformed, the server unfit or, where nobody goes on
 * without it, unreachable
 */
export async function openStore(
  redisUrl: string | undefined,
  { timeoutMs, warn = console.warn, goOnWithout }: OpenOptions = {},
) {
  if (redisUrl === undefined) {
    const store = memoryStore()
    return { store, denylist: undefined, name: 'memory', close: store.close }
  }
  const { host } = parseRedisUrl(redisUrl)
  const redis = new Redis(redisUrl)
  // The store reports what fails; without a listener ioredis prints every lost connection.
  redis.on('error', () => undefined)
  const store = redisStore(redis, { timeoutMs })
  const denylist = redisDenylist(redis)
  const close = () => {
    denylist.close()
    store.close()
    redis.disconnect()
  }
  try {
    for (const warning of await store.check()) warn(warning)
  } catch (error) {
    const complaint = `Redis at ${host} cannot serve: ${(error as Error).message}`
    const isOutOfReach = error instanceof ServiceAuthError && error.code === 'unavailable'
    if (isOutOfReach && goOnWithout) goOnWithout(complaint)
    else {
      close()
      throw new StartError(complaint)
    }
  }
  return { store, denylist, name: `Redis at ${host}`, close }
}

/** Never quotes the address: it may hold a password. */
function parseRedisUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isRedis = /^rediss?:$/.test(url?.protocol ?? '')
  if (url && isRedis && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname)) return url
  throw new StartError('REDIS_URL must be an address such as redis://localhost:6379/0')
}
