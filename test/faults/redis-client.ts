import type { RedisClientLike } from 'express-service-auth/redis'

interface Address {
  readonly host: string
  readonly port: number
}

/** Where a Redis is found. It passes between processes as JSON. */
export type RedisPlace = Address | { readonly name: string; readonly sentinels: readonly Address[] }

type Connect = (place: RedisPlace) => Promise<RedisClientLike>

/** Each process loads only the library that it uses. */
const LIBRARIES: Readonly<Record<string, Connect>> = {
  'ioredis 6': async (place) => new (await import('ioredis')).Redis(optionsFor(place)),
  'ioredis 5': async (place) => new (await import('ioredis5')).Redis(optionsFor(place)),
  'iovalkey 0.4': async (place) => new (await import('iovalkey')).Redis(optionsFor(place)),
  'iovalkey 0.3': async (place) => new (await import('iovalkey03')).Redis(optionsFor(place)),
  'node-redis 6': async (place) =>
    (await import('redis')).createClient({ socket: place as Address }),
  'node-redis 5': async (place) =>
    (await import('redis5')).createClient({ socket: place as Address }),
}

const optionsFor = (place: RedisPlace) => ({
  ...('sentinels' in place ? { ...place, sentinels: [...place.sentinels] } : place),
  lazyConnect: true,
})

/**
 * Returns a client of the library under test, which does not connect. The package takes no client of node-redis
 * behind sentinels: there, ioredis 6 stands in for it.
 */
export function redisClient(place: RedisPlace): Promise<RedisClientLike> {
  const library = process.env['REDIS_CLIENT'] ?? 'ioredis 6'
  const isRefused = 'sentinels' in place && library.startsWith('node-redis')
  const connect = LIBRARIES[isRefused ? 'ioredis 6' : library]
  if (connect === undefined) throw new Error(`REDIS_CLIENT names no client: ${library}`)
  return connect(place)
}
