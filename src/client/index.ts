/**
 * Tokens and calls of the calling side.
 *
 * @module express-service-auth/client
 */

export type { ApiKey } from './core/core-options.js'
export {
  type AttemptError,
  type AttemptReport,
  type CallObserver,
  type CallReport,
  reportOf,
  ServiceCallError,
  type ServiceCallErrorCode,
} from './service-fetch/call-report.js'
export { serviceFetch } from './service-fetch/service-fetch.js'
export type { ServiceFetchOptions } from './service-fetch/service-fetch-options.js'
export type { ProofRequest } from './token-source/binding.js'
export type { ServiceClaims } from './token-source/mint.js'
export {
  type CoreTokenSource,
  type DpopTokenSource,
  type TokenSource,
  type TokenSourceOptions,
  tokenSource,
} from './token-source/token-source.js'
export { TokenSourceError, type TokenSourceErrorCode } from './token-source/token-source-error.js'
export type { TokenSourceHealth } from './token-source/token-state.js'
