export { DenylistUnconfirmed } from '../../verification/denylist/denylist-unconfirmed.js'
export type {
  AllowResult,
  DamagedRow,
  DeniedEntry,
  DenyListResult,
  DenylistCallOptions,
  DenylistOperations,
  DenylistReceiver,
  DenylistVersion,
  DenyResult,
  RemoveResult,
} from './denylist/operations.js'
export {
  type RedisDenylist,
  type RedisDenylistOptions,
  redisDenylist,
} from './denylist/redis-denylist.js'
export { type RedisStoreOptions, redisStore } from './store/redis-store.js'
