export { DenylistUnconfirmed } from '../../denylist/unconfirmed.js'
export {
  type RedisDenylist,
  type RedisDenylistOptions,
  redisDenylist,
} from './denylist.js'
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
} from './denylist-operations.js'
export { type RedisStoreOptions, redisStore } from './redis-store.js'
