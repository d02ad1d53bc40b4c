import { hasFunctions } from '../../../base/options.js'
import type { IoredisLike, OpenClient, OwnClients, RedisClientLike } from './client.js'
import { type Ioredis, ioredisClients } from './ioredis.js'
import {
  type NodeRedis,
  type NodeRedisCluster,
  openNodeRedis,
  openNodeRedisCluster,
} from './node-redis.js'

const ACCEPTED =
  'redis must be a Redis or Cluster client of ioredis 5 or 6 or of iovalkey 0.3 or 0.4, such as new Redis(url), ' +
  'or what createClient or createCluster of redis (node-redis) 5 or 6 returns'

/**
 * Returns what opens clients with the library and options of `redis`, an argument of the function `caller`. Sends
 * nothing on `redis` itself, which may be connected or not. Its options are read again for each client, because the
 * app may replace short-lived passwords.
 *
 * @throws TypeError if `redis` is not a supported client, or has an option that would be ignored.
 */
export function ownClients(caller: string, redis: RedisClientLike): OwnClients {
  if (isIoredis(redis)) return ioredisClients(caller, redis)
  if (isNodeRedis(redis)) {
    return {
      open: (options) => openNodeRedis(redis, options),
      isCluster: false,
      usesTls: redis.options?.socket?.tls === true,
    }
  }
  if (isNodeRedisCluster(redis)) {
    const open: OpenClient = (options) => openNodeRedisCluster(redis, options)
    return { open, isCluster: true, usesTls: false }
  }
  throw new TypeError(`${caller}: ${ACCEPTED}`)
}

const isIoredis = (redis: unknown): redis is Ioredis =>
  hasFunctions(redis, ['duplicate']) &&
  typeof (redis as Partial<IoredisLike>).isCluster === 'boolean'

const NODE_REDIS_5_FUNCTIONS = ['duplicate', 'withTypeMapping', 'destroy']

const isNodeRedis = (redis: unknown): redis is NodeRedis =>
  hasFunctions(redis, [...NODE_REDIS_5_FUNCTIONS, 'sendCommand', 'createPool'])

const isNodeRedisCluster = (redis: unknown): redis is NodeRedisCluster =>
  hasFunctions(redis, [...NODE_REDIS_5_FUNCTIONS, 'nodeClient'])
