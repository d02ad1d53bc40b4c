export type {
  CoupledEnding,
  CoupledFinding,
  CoupledOutcome,
  CoupledRequest,
  CoupledRun,
  CoupledStore,
} from './coupled/store.js'
export type { DecisionEvent, DecisionObserver } from './decision/event.js'
export { ServiceAuthError, type ServiceAuthErrorCode } from './decision/fault.js'
export type { Reason, RefusalReason, UndecidedReason } from './decision/reason.js'
export type { StoreEvent, StoreOperation } from './decision/store-call.js'
export type { DeniedKind, DenylistEntry, DenylistTarget } from './denylist/entry.js'
export type { DenylistEvent } from './denylist/event.js'
export type {
  DeniedLists,
  DenylistFailureCode,
  DenylistHealth,
  LiveDenylist,
} from './denylist/live-denylist.js'
export type { IdempotencyContext } from './idempotency/context.js'
export type { IdempotencyEvent, IdempotencyRefusal, RunEnd, Undone } from './idempotency/event.js'
export type { KeySetEvent } from './key-set/event.js'
export type { FetchFailureCode } from './key-set/exchange.js'
export type { KeySet, KeySetHealth } from './key-set/key-set.js'
export { type RemoteKeySetOptions, remoteKeySet } from './key-set/remote-key-set.js'
export type { SkipReason } from './key-set/screen.js'
export type { CanRead, RecordKeeper, RecordView, Resolution } from './leased/record-view.js'
export type {
  Ending,
  IdempotencyStore,
  Reservation,
  ReservationRequest,
  Run,
} from './leased/store.js'
export { type Logger, type LogOptions, logDecisions } from './log/log-decisions.js'
export {
  type AcceptOneOf,
  type AcceptOneOfOptions,
  acceptOneOf,
} from './middleware/accept-one-of.js'
export type { AnyRouteHandler } from './middleware/any-route.js'
export type {
  AnyChoice,
  Choice,
  CredentialOf,
  NoPromise,
  ServiceChoice,
} from './middleware/choice.js'
export type {
  CoupledIdempotencyOptions,
  IdempotencyOptions,
  LeasedIdempotencyOptions,
} from './middleware/idempotency-options.js'
export type { RequestNamer } from './middleware/idempotent-request.js'
export { type AcceptedCredential, serviceOf } from './middleware/request-state.js'
export { requireIdempotencyKey } from './middleware/require-idempotency-key.js'
export { requirePermissions } from './middleware/require-permissions.js'
export { requireSingleUse, type SingleUseOptions } from './middleware/require-single-use.js'
export { type Health, type ServiceAuth, serviceAuth } from './middleware/service-auth.js'
export { type ServiceCredential, serviceCredential } from './middleware/service-credential.js'
export {
  type FrontendSession,
  type SessionCredential,
  type SessionCredentialOptions,
  type SessionVerifier,
  sessionCredential,
} from './middleware/session-credential.js'
export type { CallersOption } from './policy/callers.js'
export type { Denylist, DenylistOption } from './policy/denylist-option.js'
export type { ServiceIdentity } from './policy/identity.js'
export type { ServiceAuthPolicy } from './policy/policy.js'
export type { SingleUseStore } from './replay/single-use.js'
export {
  type EncryptedStore,
  type EncryptedStoreOptions,
  encryptedStore,
} from './stores/encrypted.js'
export type { StoreFault, StoreHealth } from './stores/health.js'
export { memoryStore, type Store } from './stores/memory.js'
export type { TokenCacheHealth } from './token/accepted-tokens.js'
