/** What the simulation uses of the package, with the real ioredis. */
export { Redis } from 'ioredis'
export { serviceFetch } from '../../src/client/index.js'
export { encodeResult } from '../../src/idempotency/buffered-response/stored-result.js'
export { deriveRecordId as recordKey } from '../../src/idempotency/fingerprint.js'
export {
  remoteKeySet,
  requireIdempotencyKey,
  requireSingleUse,
  serviceAuth,
} from '../../src/index.js'
export { redisDenylist, redisStore } from '../../src/stores/redis/index.js'
