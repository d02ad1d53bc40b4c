import type { RedisClientLike } from 'express-service-auth/redis'

type Connect = (host: string, port: number) => Promise<RedisClientLike>

/** Each process loads only the library that it uses. */
const LIBRARIES: Readonly<Record<string, Connect>> = {
  'ioredis 6': async (host, port) =>
    new (await import('ioredis')).Redis({ host, port, lazyConnect: true }),
  'ioredis 5': async (host, port) =>
    new (await import('ioredis5')).Redis({ host, port, lazyConnect: true }),
  'iovalkey 0.4': async (host, port) =>
    new (await import('iovalkey')).Redis({ host, port, lazyConnect: true }),
  'iovalkey 0.3': async (host, port) =>
    new (await import('iovalkey03')).Redis({ host, port, lazyConnect: true }),
  'node-redis 6': async (host, port) =>
    (await import('redis')).createClient({ socket: { host, port } }),
  'node-redis 5': async (host, port) =>
    (await import('redis5')).createClient({ socket: { host, port } }),
}

/** Returns a client of the library under test, which does not connect. */
export function redisClient(url: string): Promise<RedisClientLike> {
  const library = process.env['REDIS_CLIENT'] ?? 'ioredis 6'
  const connect = LIBRARIES[library]
  if (connect === undefined) throw new Error(`REDIS_CLIENT names no client: ${library}`)
  const { hostname, port } = new URL(url)
  return connect(hostname, Number(port))
}
