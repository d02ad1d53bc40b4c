/**
 * Records, used tokens and denials in Redis.
 *
 * @module express-service-auth/redis
 */

export type { IoredisLike, NodeRedisLike, RedisClientLike } from './connection/client.js'
export {
  type AllowResult,
  type DeniedEntry,
  type DenyListResult,
  type DenylistCallOptions,
  type DenylistOperations,
  type DenylistReceiver,
  DenylistUnconfirmed,
  type DenylistVersion,
  type DenyResult,
} from './denylist/operations.js'
export {
  type RedisDenylist,
  type RedisDenylistOptions,
  redisDenylist,
} from './denylist/redis-denylist.js'
export { type RedisStoreOptions, redisStore } from './store/redis-store.js'
