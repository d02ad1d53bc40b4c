export {
  type RedisDenylist,
  type RedisDenylistOptions,
  redisDenylist,
} from './denylist.js'
export type {
  Allowed,
  Denied,
  DenylistDesk,
  DenylistMoment,
  DenylistReceiver,
  DeskOptions,
} from './denylist-desk.js'
export { type RedisStoreOptions, redisStore } from './redis-store.js'
