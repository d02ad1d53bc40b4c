/** The name of the scope, and what sets the names here apart from OpenTelemetry's conventions. */
export const SCOPE = 'express-service-auth'
const PREFIX = 'express_service_auth.'

export const METRIC = {
  decisions: `${PREFIX}decisions`,
  reservations: `${PREFIX}reservations`,
  runs: `${PREFIX}runs`,
  storeOperationDuration: `${PREFIX}store.operation.duration`,
  keySetFetches: `${PREFIX}key_set.fetches`,
  keySetAge: `${PREFIX}key_set.age`,
  keySetKeys: `${PREFIX}key_set.keys`,
  denylistAge: `${PREFIX}denylist.age`,
  denylistEntries: `${PREFIX}denylist.entries`,
  tokenCacheRequests: `${PREFIX}token_cache.requests`,
} as const

export const ATTRIBUTE = {
  errorType: 'error.type',
  peer: 'service.peer.name',
  guard: `${PREFIX}guard`,
  outcome: `${PREFIX}outcome`,
  reason: `${PREFIX}reason`,
  keyId: `${PREFIX}key_id`,
  record: `${PREFIX}record`,
  fence: `${PREFIX}fence`,
  runEnd: `${PREFIX}run.end`,
  storeOperation: `${PREFIX}store.operation`,
  keySetUrl: `${PREFIX}key_set.url`,
  denylistIndex: `${PREFIX}denylist.index`,
  result: `${PREFIX}result`,
} as const
