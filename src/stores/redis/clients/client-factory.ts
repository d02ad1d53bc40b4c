import type { Redis } from 'ioredis'
import { hasFunctions } from '../../../base/options.js'
import { ioredisFactory } from './ioredis.js'
import type { Ioredis } from './ioredis-duplicates.js'
import { type NodeRedisCluster, nodeRedisClusterFactory, nodeRedisFactory } from './node-redis.js'
import type { NodeRedis } from './node-redis-connection.js'
import type { ClientFactory } from './redis-client.js'

/** A `Redis` or `Cluster` of ioredis 5 or 6, or of iovalkey 0.3 or 0.4. */
export interface IoredisLike {
  /** Whether it is a `Cluster`. */
  readonly isCluster: boolean
  /** The state of its connection. */
  readonly status: string
  /** Makes another client with the same options. */
  duplicate(...overrides: never[]): unknown
}

/** What `createClient` or `createCluster` of node-redis 5 or 6 returns. */
export interface NodeRedisLike {
  /** Whether it has been connected. */
  readonly isOpen: boolean
  /** Makes another client with the same options. */
  duplicate(overrides?: never): unknown
  /** New in node-redis 5. */
  withTypeMapping(mapping: never): unknown
  /** New in node-redis 5. */
  destroy(): unknown
}

/** A client of any supported library. */
export type RedisClientLike = IoredisLike | NodeRedisLike

/**
 * Returns what opens clients with the library and options of `redis`, an argument of the function `caller`. Sends
 * nothing on `redis` itself, which may be connected or not.
 *
 * @throws TypeError if `redis` is not a supported client, or has an option that would be ignored.
 */
export function clientFactory(caller: string, redis: RedisClientLike): ClientFactory {
  if (isIoredis(redis)) {
    requireDatabase(caller, redis.isCluster ? 0 : (redis as Redis).options.db)
    return ioredisFactory(redis)
  }
  if (isNodeRedis(redis)) {
    requireTextPrefix(caller, redis.options?.keyPrefix)
    return nodeRedisFactory(redis)
  }
  if (isNodeRedisCluster(redis)) {
    requireTextPrefix(caller, redis._options.keyPrefix)
    return nodeRedisClusterFactory(redis)
  }
  const what = guessClient(redis)
  throw new TypeError(`${caller}: ${ACCEPTED}${what === undefined ? '' : `, not ${what}`}`)
}

const ACCEPTED =
  'redis must be a Redis or Cluster client of ioredis 5 or 6 or of iovalkey 0.3 or 0.4, such as new Redis(url), ' +
  'or what createClient or createCluster of redis (node-redis) 5 or 6 returns'

const isIoredis = (redis: unknown): redis is Ioredis =>
  hasFunctions(redis, ['duplicate']) &&
  typeof (redis as Partial<IoredisLike>).isCluster === 'boolean'

const NODE_REDIS_5_FUNCTIONS = ['duplicate', 'withTypeMapping', 'destroy']

const isNodeRedis = (redis: unknown): redis is NodeRedis =>
  hasFunctions(redis, [...NODE_REDIS_5_FUNCTIONS, 'sendCommand', 'createPool'])

const isNodeRedisCluster = (redis: unknown): redis is NodeRedisCluster =>
  hasFunctions(redis, [...NODE_REDIS_5_FUNCTIONS, 'nodeClient']) &&
  Array.isArray((redis as Partial<NodeRedisCluster>)._options?.rootNodes)

/** Returns which unsupported client `redis` seems to be. */
function guessClient(redis: unknown): string | undefined {
  if (hasFunctions(redis, ['send_command', 'duplicate'])) return 'a client of node-redis 3'
  if (hasFunctions(redis, ['withTypeMapping', 'acquire'])) return 'one of createSentinel'
  if (hasFunctions(redis, ['withTypeMapping', 'execute'])) return 'one of createClientPool'
  if (hasFunctions(redis, ['sendCommand', 'duplicate'])) return 'a client of node-redis 4'
  return undefined
}

/** For anything but a number, ioredis would use database 0. */
function requireDatabase(caller: string, db: unknown = 0): void {
  if (/^\d+$/.test(String(db))) return
  throw new TypeError(`${caller}: the option db of redis must be the number of a database`)
}

function requireTextPrefix(caller: string, keyPrefix: unknown = ''): void {
  if (typeof keyPrefix === 'string') return
  throw new TypeError(`${caller}: the option keyPrefix of redis must be a string`)
}
