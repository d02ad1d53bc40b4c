/**
 * The middlewares and their options.
 *
 * @module express-service-auth
 */

export type { DecisionEvent, DecisionObserver } from './base/decision/decision-event.js'
export type {
  IdempotencyEvent,
  IdempotencyRefusal,
  RunEnd,
  Undone,
} from './base/decision/idempotency-event.js'
export type { FetchFailureCode, KeySetEvent, SkipReason } from './base/decision/key-set-event.js'
export type { Reason, RefusalReason, UndecidedReason } from './base/decision/reason.js'
export { ServiceAuthError, type ServiceAuthErrorCode } from './base/decision/service-auth-error.js'
export type {
  DenylistEvent,
  DenylistFailureCode,
  StoreEvent,
  StoreOperation,
} from './base/decision/store-event.js'
export type {
  Ending,
  IdempotencyStore,
  Reservation,
  ReservationRequest,
  Run,
} from './idempotency/leased/idempotency-store.js'
export type {
  CanRead,
  RecordKeeper,
  RecordView,
  Resolution,
} from './idempotency/leased/record-keeper.js'
export type {
  CoupledStore,
  Finding,
  HandlerEnding,
  HandlerRun,
  IdempotencyContext,
  RecordFinding,
  RunOutcome,
  RunRequest,
} from './idempotency/run.js'
export type { SingleUseStore, TokenUse } from './idempotency/single-use.js'
export {
  type AcceptOneOf,
  type AcceptOneOfOptions,
  acceptOneOf,
} from './middleware/accept-one-of/accept-one-of.js'
export {
  type AnyChoice,
  type Choice,
  type CredentialOf,
  type NoPromise,
  type ServiceChoice,
  type ServiceCredential,
  serviceCredential,
} from './middleware/accept-one-of/choice.js'
export {
  type FrontendSession,
  type SessionCredential,
  type SessionCredentialOptions,
  type SessionVerifier,
  sessionCredential,
} from './middleware/accept-one-of/session-credential.js'
export type { AnyRouteHandler } from './middleware/any-route.js'
export type {
  Authenticate,
  AuthenticateOptions,
  Authentication,
} from './middleware/authenticate.js'
export type { HeadersInput } from './middleware/headers-input.js'
export type {
  CoupledIdempotencyOptions,
  IdempotencyOptions,
  LeasedIdempotencyOptions,
  RequestNamer,
} from './middleware/idempotency-key/idempotency-options.js'
export { requireIdempotencyKey } from './middleware/idempotency-key/require-idempotency-key.js'
export { type AcceptedCredential, serviceOf } from './middleware/request-state.js'
export { requireAnyPermission, requirePermissions } from './middleware/require-permissions.js'
export { requireSingleUse, type SingleUseOptions } from './middleware/require-single-use.js'
export type { Health } from './middleware/service-auth.js'
export {
  type IssuerHealth,
  type MultiIssuerAuth,
  type MultiIssuerHealth,
  type ServiceAuth,
  serviceAuth,
} from './middleware/service-auth.js'
export {
  type EncryptedStore,
  type EncryptedStoreOptions,
  encryptedStore,
} from './stores/encrypted/encrypted-store.js'
export { memoryStore, type Store } from './stores/memory-store.js'
export type { StoreFault, StoreHealth } from './stores/store-health.js'
export { type Logger, type LogOptions, logDecisions } from './telemetry/log/log-decisions.js'
export type { TokenCacheHealth } from './verification/admit.js'
export type {
  Confirmation,
  SenderConstraintOption,
} from './verification/confirmation/sender-constraint.js'
export type {
  DeniedKind,
  DenylistEntry,
  DenylistTarget,
} from './verification/denylist/denylist-entry.js'
export type {
  DeniedLists,
  DenylistHealth,
  LiveDenylist,
} from './verification/denylist/live-denylist.js'
export type { KeySet, KeySetHealth } from './verification/key-set/key-set.js'
export { type RemoteKeySetOptions, remoteKeySet } from './verification/key-set/remote-key-set.js'
export type { Denylist, DenylistOption } from './verification/policy/denylist-option.js'
export type { ServiceIdentity } from './verification/policy/identity.js'
export type {
  CallersOption,
  OAuth2Policy,
  ServiceAuthPolicy,
} from './verification/policy/policy-options.js'
