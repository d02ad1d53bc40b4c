import { isObject } from '../../base/options.js'
import type { ImportUser } from '../core/import-user.js'
import { becomesPrimary, repeatedMethodsOf } from './login-keys.js'
import { type ReadMethod, readLoginMethod } from './login-method.js'
import { assertPhonePlans } from './phone-number.js'
import {
  checkUnknown,
  type JsonObject,
  memberOf,
  optional,
  type Reading,
  required,
} from './read-field.js'
import {
  coreTenantIds,
  MAX_EXTERNAL_USER_ID_LENGTH,
  PUBLIC_TENANT,
  trimmed,
} from './stored-form.js'
import { checkMetadata, type ReadRole, readTotpDevices, readUserRoles } from './user-fields.js'
import type { UserError, UserWarning } from './user-finding.js'
import { type FindingCollector, openFindings } from './user-finding.js'
import { checkContext, type Feature, lacks, type UserContext } from './validation-context.js'

/** The result of `validateUser`. */
export type UserValidation =
  /** `user` is the value itself, unchanged. The core normalises it. */
  | { readonly ok: true; readonly user: ImportUser; readonly warnings: readonly UserWarning[] }
  /** The core refuses the user. */
  | {
      readonly ok: false
      /** At most 1000 errors. */
      readonly errors: readonly UserError[]
      readonly warnings: readonly UserWarning[]
    }

/**
 * Validates a user like the core when it accepts a user for the bulk import, with the same messages in the same order.
 * Also warns of values that the core accepts but that fail later. `value` is a result of `JSON.parse`.
 * Where `context` omits a member, nothing is checked against it. Does not check whether the tenants of a user share a database, or whether
 * another user has the same external id. Never throws because of `value`.
 *
 * @throws TypeError if a member of `context` is neither a list nor a set. Error if the installed
 * google-libphonenumber has other numbering plans than the core.
 * @see SuperTokens core, `BulkImportUserUtils`
 *
 * @example
 * ```ts
 * import { validateUser } from 'express-service-auth/migration'
 *
 * const user = { externalUserId: 'ada', loginMethods: [{ recipeId: 'email' }] }
 * const result = validateUser(user, { tenants: ['public'] })
 * console.log(result.ok) // false
 * ```
 */
export function validateUser(value: unknown, context: UserContext = {}): UserValidation {
  assertPhonePlans()
  checkContext(context)
  const findings = openFindings()
  const { errors, warnings } = findings
  if (!isObject(value)) {
    findings.refuse('wrong_type', '', 'A user should be of type object.')
    return { ok: false, errors, warnings }
  }
  readUser({ object: value, field: '', suffix: '.', findings }, context)
  if (errors.length > 0) return { ok: false, errors, warnings }
  const user = value as unknown as ImportUser
  warnOfRepeated(user, findings)
  return { ok: true, user, warnings }
}

/** Checks the parts in the order of the core. */
function readUser(record: Reading, context: UserContext): void {
  const { findings } = record
  const externalUserId = optional(record, 'externalUserId', 'string')
  const metadata = optional(record, 'userMetadata', 'object')
  if (metadata !== undefined) checkMetadata(metadata, findings)
  const roles = readUserRoles(record, context)
  readTotpDevices(record, context)
  const methods = readLoginMethods(record, context)
  checkExternalUserId(externalUserId, findings)
  checkTenants(roles, methods, findings)
  checkUnknown(record, 'user')
}

function checkExternalUserId(id: string | undefined, findings: FindingCollector): void {
  if (id === undefined || id.length <= MAX_EXTERNAL_USER_ID_LENGTH) return
  const message = `externalUserId ${id} is too long. Max length is 128.`
  findings.refuse('too_long', 'externalUserId', message)
}

function checkTenants(
  roles: readonly ReadRole[],
  methods: readonly ReadMethod[],
  findings: FindingCollector,
): void {
  for (const { field, tenantIds } of roles) {
    for (const tenantId of tenantIds) {
      if (tenantId === PUBLIC_TENANT) continue
      if (methods.some((method) => method.tenantIds.includes(tenantId))) continue
      const message = `TenantId ${tenantId} for a user role does not exist in loginMethods.`
      findings.refuse('tenant_without_login', memberOf(field, 'tenantIds'), message)
    }
  }
  for (const { field, tenantIds } of methods) {
    if (tenantIds.length > 0) continue
    // The core quotes the whole login method here.
    const message = "LoginMethod '…' has no tenantId"
    findings.refuse('no_tenant', memberOf(field, 'tenantIds'), message)
  }
}

function warnOfRepeated(user: ImportUser, findings: FindingCollector): void {
  if (user.loginMethods.length < 2) return
  for (const index of repeatedMethodsOf(user)) {
    const message = 'An earlier method of this user has this login: the import fails.'
    findings.warn('login_twice', `loginMethods[${index}]`, message)
  }
}

const SUFFIX = ' for a loginMethod.'

function readLoginMethods(record: Reading, context: UserContext): ReadMethod[] {
  const { findings } = record
  const given = required(record, 'loginMethods', 'array of object')
  if (given === undefined) return []
  if (given.length === 0) {
    findings.refuse('no_login_method', 'loginMethods', 'At least one loginMethod is required.')
    return []
  }
  if (given.length > 1 && lacks(context, 'account_linking')) {
    const message = 'Account linking must be enabled to import multiple loginMethods.'
    findings.refuse('feature_missing', 'loginMethods', message)
  }
  checkPrimaries(given, findings, context)
  const methods: ReadMethod[] = []
  for (const [index, object] of given.entries()) {
    const field = `loginMethods[${index}]`
    const method = readLoginMethod({ object, field, suffix: SUFFIX, findings }, context)
    if (method !== undefined) methods.push(method)
  }
  return methods
}

function checkPrimaries(
  methods: readonly JsonObject[],
  findings: FindingCollector,
  context: UserContext,
): void {
  const primaries = methods.flatMap((method, index) => (isPrimary(method) ? [index] : []))
  for (const index of primaries.slice(1)) {
    const message = 'No two loginMethods can have isPrimary as true.'
    findings.refuse('two_primaries', `loginMethods[${index}].isPrimary`, message)
  }
  if (primaries.length === 0 && methods.length > 1) {
    const message =
      'Without isPrimary on one of them, core 12 makes a user of each; 10.1 and 11.4 link them.'
    findings.warn('no_primary', 'loginMethods', message)
  }
  if (primaries.length > 0 && methods.length === 1 && lacks(context, 'account_linking')) {
    const message = 'A primary user needs account linking: without it the import fails.'
    findings.warn('primary_without_linking', 'loginMethods[0].isPrimary', message)
  }
}

const isPrimary = (method: JsonObject): boolean =>
  Object.hasOwn(method, 'isPrimary') && method['isPrimary'] === true

/** The tenants, roles, features and providers that the core needs to import a user. */
export interface UserNeeds {
  /** Ids as the core stores them, including `public`. */
  readonly tenants: readonly string[]
  readonly roles: readonly string[]
  /** `mfa` includes `account_linking`. */
  readonly features: readonly Feature[]
  /** Third-party providers by tenant. The backend may configure them instead of the core. */
  readonly providers: readonly { readonly tenantId: string; readonly thirdPartyId: string }[]
}

/** Expects a user that is valid without a context. */
export function needsOf(user: ImportUser): UserNeeds {
  const { loginMethods, userRoles = [] } = user
  const tenants = new Set<string>()
  for (const { tenantIds } of [...loginMethods, ...userRoles]) {
    for (const tenantId of coreTenantIds(tenantIds)) tenants.add(tenantId)
  }
  return {
    tenants: [...tenants],
    roles: [...new Set(userRoles.map(({ role }) => trimmed(role)))],
    features: featuresOf(user),
    providers: loginMethods.flatMap(({ recipeId, tenantIds, thirdPartyId }) => {
      if (recipeId !== 'thirdparty' || thirdPartyId === undefined) return []
      return coreTenantIds(tenantIds).map((tenantId) => ({ tenantId, thirdPartyId }))
    }),
  }
}

function featuresOf({ loginMethods, userRoles = [], totpDevices }: ImportUser): Feature[] {
  const features: Feature[] = []
  if (becomesPrimary(loginMethods)) features.push('account_linking')
  const hasOtherTenant = [...loginMethods, ...userRoles].some(({ tenantIds }) =>
    tenantIds?.some((tenantId) => tenantId !== PUBLIC_TENANT),
  )
  if (hasOtherTenant) features.push('multi_tenancy')
  if (totpDevices !== undefined) features.push('mfa')
  return features
}
