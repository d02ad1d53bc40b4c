/**
 * An issuer, hostile tokens and the rules of a store.
 *
 * @module express-service-auth/testing
 */

export { createTestCore, type TestCore, type TestCoreOptions } from './core/test-core.js'
export type { DenylistUnderTest } from './denylist/live-denylist-cases.js'
export { type DenylistOpener, liveDenylistCases } from './denylist/live-denylist-cases.js'
export type { HostileToken } from './hostile/forge.js'
export { hostileProofs } from './hostile/hostile-proofs.js'
export { hostileTokens } from './hostile/hostile-tokens.js'
export type { HostileProof } from './hostile/proof-forge.js'
export type { BoundToken } from './issuer/bound-token.js'
export { createTestIssuer, type TestIssuer, type TestIssuerOptions } from './issuer/issuer.js'
export { idempotencyStoreCases } from './stores/idempotency-store-cases.js'
export { recordKeeperCases } from './stores/record-keeper-cases.js'
export { singleUseStoreCases } from './stores/single-use-store-cases.js'
export type { StoreCase, StoreOpener } from './stores/store-case.js'
export { transactionRunnerCases } from './transaction-runner/transaction-runner-cases.js'
