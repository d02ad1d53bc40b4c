export type { ApiKey } from '../core-client/api-key.js'
export type { ServiceClaims } from './asked-token.js'
export {
  type AttemptError,
  type AttemptReport,
  type CallObserver,
  type CallReport,
  reportOf,
} from './call-report.js'
export type { TokenSourceHealth } from './health.js'
export { ServiceCallError, type ServiceCallErrorCode } from './service-call-error.js'
export { serviceFetch } from './service-fetch.js'
export type { ServiceFetchOptions } from './service-fetch-options.js'
export type { TokenSource } from './source.js'
export { type CoreTokenSource, type TokenSourceOptions, tokenSource } from './token-source.js'
export { TokenSourceError, type TokenSourceErrorCode } from './token-source-error.js'
