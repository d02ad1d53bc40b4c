export { DenylistUnconfirmed } from '../../denylist/unconfirmed.js'
export {
  type RedisDenylist,
  type RedisDenylistOptions,
  redisDenylist,
} from './denylist.js'
export type {
  AllowResult,
  DenylistCallOptions,
  DenylistOperations,
  DenylistReceiver,
  DenylistVersion,
  DenyResult,
} from './denylist-operations.js'
export { type RedisStoreOptions, redisStore } from './redis-store.js'
