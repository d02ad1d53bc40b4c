/** What the simulation uses of the package, with the real ioredis and the real pg. */
export { Redis } from 'ioredis'
export { Pool } from 'pg'
export { serviceFetch } from '../../src/client/index.js'
export { encodeResult } from '../../src/idempotency/buffered-response/stored-result.js'
export { deriveRecordId as recordKey } from '../../src/idempotency/fingerprint.js'
export {
  remoteKeySet,
  requireIdempotencyKey,
  requireSingleUse,
  serviceAuth,
} from '../../src/index.js'
export { openMigrationWith } from '../../src/migration/run/open-migration.js'
export { fromPg, migration, postgresStore } from '../../src/stores/postgres/index.js'
export { recordIds } from '../../src/stores/postgres/sql/statements.js'
export { redisDenylist, redisStore } from '../../src/stores/redis/index.js'
/** With the package's own errors. */
export { simulatedCore } from '../migration/run/support/simulated-core.js'
