/**
 * Accounts of an older identity service.
 *
 * @module express-service-auth/migration
 */

export type {
  MigrationAcceptance,
  MigrationCounts,
  MigrationDecision,
  MigrationDecisionObserver,
  MigrationProgress,
  MigrationRefusal,
  MigrationUndecided,
} from '../base/decision/migration-event.js'
export type { ApiKey } from '../client/core/core-options.js'
export { type ImportOneResult, importOne } from './account/import-one.js'
export type {
  AccountInfo,
  CallOptions,
  CoreClient,
  CoreLoginMethod,
  CoreTenant,
  CoreTotpDevice,
  CoreUser,
  DirectImport,
  RowQuery,
  RowStatus,
  StagedRow,
  StagedUser,
  Staging,
} from './core/core-client.js'
export { CoreError, type CoreErrorCode, type CoreErrorOutcome } from './core/core-error.js'
export type {
  ImportLoginMethod,
  ImportTotpDevice,
  ImportUser,
  ImportUserRole,
  RecipeId,
} from './core/import-user.js'
export { type CoreClientOptions, coreClient } from './core/open-core-client.js'
export type {
  LegacyLogin,
  LegacyUser,
  LegacyUserQuery,
  LoadUser,
  MigrationConnection,
  MigrationEndpointOptions,
  MigrationIssuer,
  MigrationLimiter,
  MigrationRecipe,
  TokenList,
} from './endpoint/endpoint-options.js'
export { migrationEndpoint } from './endpoint/migration-endpoint.js'
export type { LegacyIdentity } from './endpoint/migration-request.js'
export type { Journal } from './journal/file-journal.js'
export { fileJournal } from './journal/file-journal.js'
export type {
  UserError,
  UserErrorCode,
  UserFinding,
  UserWarning,
  UserWarningCode,
} from './record-validation/user-finding.js'
export {
  type Names,
  type UserContext,
  type UserValidation,
  validateUser,
} from './record-validation/validate-user.js'
export type {
  Migration,
  MigrationOptions,
  StepOptions,
} from './run/migration.js'
export { MigrationError, type MigrationErrorCode } from './run/migration-error.js'
export { openMigration } from './run/open-migration.js'
export type {
  IdentityReport,
  IdentityState,
  MigrationReport,
  RowLeft,
} from './run/report.js'
export type { MigrationState, PreflightFinding } from './run/state/journal-entry.js'
export type { IdentityDetails } from './run/state/run-state.js'
export type { Source } from './source/source.js'
