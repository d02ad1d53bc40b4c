import type { RedisClientLike } from 'express-service-auth/redis'

/** Where a Redis is found. It passes between processes as JSON. */
interface RedisPlace {
  readonly host: string
  readonly port: number
}

type Connect = (place: RedisPlace) => Promise<RedisClientLike>

/** Each process loads only the library that it uses. */
const LIBRARIES: Readonly<Record<string, Connect>> = {
  'ioredis 6': async (place) => new (await import('ioredis')).Redis(lazily(place)),
  'ioredis 5': async (place) => new (await import('ioredis5')).Redis(lazily(place)),
  'iovalkey 0.4': async (place) => new (await import('iovalkey')).Redis(lazily(place)),
  'iovalkey 0.3': async (place) => new (await import('iovalkey03')).Redis(lazily(place)),
  'node-redis 6': async (place) => (await import('redis')).createClient({ socket: place }),
  'node-redis 5': async (place) => (await import('redis5')).createClient({ socket: place }),
}

const lazily = (place: RedisPlace) => ({ ...place, lazyConnect: true })

/** Returns a client of the library under test, which does not connect. */
export function redisClient(place: RedisPlace): Promise<RedisClientLike> {
  const library = process.env['REDIS_CLIENT'] ?? 'ioredis 6'
  const connect = LIBRARIES[library]
  if (connect === undefined) throw new Error(`REDIS_CLIENT names no client: ${library}`)
  return connect(place)
}
