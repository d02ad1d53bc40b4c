import type { CallOptions, CoreClient, CoreUser, DirectImport } from '../core/core-client.js'
import { CoreError } from '../core/core-error.js'
import { conflictCodeOf, errorCodeOf, isValidationText } from '../core/core-texts.js'
import type { ImportUser } from '../core/import-user.js'
import { externalUserIdOf } from '../record-validation/normalise.js'
import type { UserFinding } from '../record-validation/user-finding.js'
import { validateUser } from '../record-validation/validate-user.js'
import { findHolder, type Identity } from './find-account.js'

/** The result of importing one user. */
export type ImportOneResult =
  /** There is one account for the user. */
  | {
      /** `existing`: the external id has an account, which this call or another one created. */
      readonly outcome: 'created' | 'existing'
      /** The core's `user.id`: the external id, unless the account has been linked to another since. */
      readonly userId: string
      /** The core's id of the account. */
      readonly coreUserId: string
    }
  /**
   * A login, an id or another unique value of the user belongs to another account. `codes` are codes of
   * the core, such as `E003`, or `unknown_conflict`.
   */
  | { readonly outcome: 'conflict'; readonly codes: readonly string[] }
  /** The user failed validation, here or in the core. */
  | { readonly outcome: 'invalid'; readonly errors: readonly UserFinding[] }

/**
 * Imports one user directly, without staging. The call may be repeated with the same user and never
 * creates a second account. `externalUserId` is required: unless the core reports success, a look-up of
 * this id decides the result, because the core refuses a call that repeats a successful one.
 *
 * @throws Error if the installed google-libphonenumber has other numbering plans than the core.
 * @throws CoreError with the outcome `unknown` if neither an account nor the user is the cause: repeat the call.
 * Rejects with the reason of the signal if it aborts. In both cases the account may exist.
 *
 * @example
 * ```ts
 * import { coreClient, importOne } from 'express-service-auth/migration'
 *
 * const core = coreClient({
 *   baseUrl: process.env['CORE_URL'] ?? 'http://127.0.0.1:3567',
 *   apiKey: process.env['CORE_API_KEY'] ?? 'local-development-key',
 * })
 * const loginMethods = [{ recipeId: 'passwordless' as const, email: 'ada@example.com' }]
 * const { outcome } = await importOne(core, { externalUserId: 'ada', loginMethods })
 * console.log(outcome) // created
 * ```
 */
export async function importOne(
  core: CoreClient,
  user: ImportUser,
  options: CallOptions = {},
): Promise<ImportOneResult> {
  const validation = validateUser(user)
  if (!validation.ok) return { outcome: 'invalid', errors: validation.errors }
  const externalUserId = externalUserIdOf(user)
  if (externalUserId === undefined) {
    const message = 'externalUserId is required.'
    const error = { field: 'externalUserId', code: 'required', message }
    return { outcome: 'invalid', errors: [error] }
  }
  if (!isWritable(user)) {
    const message = 'The user has a value that JSON cannot express, such as a BigInt.'
    return { outcome: 'invalid', errors: [{ field: '', code: 'wrong_type', message }] }
  }
  try {
    return await importAs(core, { externalUserId, user }, options)
  } catch (error) {
    throw error instanceof CoreError ? unknownOutcome(error) : error
  }
}

async function importAs(
  core: CoreClient,
  identity: Identity,
  options: CallOptions,
): Promise<ImportOneResult> {
  const { externalUserId, user } = identity
  const send = () => core.importUser(user, options)
  const attempt = await importAndFind(core, { externalUserId, send }, options)
  if (attempt.end === 'no_answer') throw attempt.error
  if (attempt.end === 'rejected') return judgeRejection(core, { ...identity, ...attempt }, options)
  const { coreUserId, created } = attempt
  const account = created ?? (await core.user(coreUserId, options))
  if (account === undefined || !isAccountOf(externalUserId, account)) {
    throw contradiction('the account has another id')
  }
  const outcome = created === undefined ? 'existing' : 'created'
  return { outcome, userId: account.id, coreUserId }
}

/** A sign-in may have linked the account to another one, whose id the core then returns. */
const isAccountOf = (externalUserId: string, { id, loginMethods }: CoreUser): boolean =>
  id === externalUserId || loginMethods.some(({ recipeUserId }) => recipeUserId === externalUserId)

/** How an attempt to import a user ended. */
type Attempt =
  /** The external id has an account, which the attempt `created`, or an earlier call. */
  | { readonly end: 'account'; readonly coreUserId: string; readonly created?: CoreUser }
  /** The core refused the user. */
  | { readonly end: 'rejected'; readonly errors: readonly string[] }
  | { readonly end: 'no_answer'; readonly error: CoreError }

interface AskedImport {
  readonly externalUserId: string
  /** Imports the user. */
  readonly send: () => Promise<DirectImport>
}

/**
 * Imports a user, then looks the external id up. The look-up decides, because the core refuses a call that repeats a
 * successful one.
 *
 * @throws CoreError if the look-up fails, or finds nothing of an account that was created.
 */
export async function importAndFind(
  core: CoreClient,
  { externalUserId, send }: AskedImport,
  options: CallOptions,
): Promise<Attempt> {
  const answer = await send().catch((error: unknown) => {
    if (error instanceof CoreError) return error
    throw error
  })
  const coreUserId = await core.coreIdOf(externalUserId, options)
  if (coreUserId !== undefined) {
    const isCreated = !(answer instanceof CoreError) && answer.outcome === 'created'
    return { end: 'account', coreUserId, ...(isCreated && { created: answer.user }) }
  }
  if (answer instanceof CoreError) return { end: 'no_answer', error: answer }
  if (answer.outcome === 'rejected') return { end: 'rejected', errors: answer.errors }
  throw contradiction('the account has no external id')
}

const contradiction = (why: string): CoreError =>
  new CoreError(`POST /bulk-import/import: ${why}`, { code: 'malformed_reply', outcome: 'unknown' })

/** The outcome is unknown even if this call was refused: an earlier call with this user may have succeeded. */
function unknownOutcome({ message, code, status }: CoreError): CoreError {
  return new CoreError(message, {
    code,
    outcome: 'unknown',
    ...(status !== undefined && { status }),
  })
}

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

interface RejectedIdentity extends Identity {
  readonly errors: readonly string[]
}

/**
 * Classifies the texts with which the core refuses to import a user. The core uses the same status for
 * errors of its database and of the user, so only known texts, and logins that another account has, count as the
 * fault of the user.
 *
 * @throws CoreError if another cause is possible.
 */
async function judgeRejection(
  core: CoreClient,
  { errors, ...identity }: RejectedIdentity,
  options: CallOptions,
): Promise<ImportOneResult> {
  const codes = errors.map(conflictCodeOf).filter((code) => code !== undefined)
  if (codes.length === errors.length) return { outcome: 'conflict', codes: [...new Set(codes)] }
  if (errors.every(isValidationText)) {
    const findings = errors.map((message) => ({ field: '', code: 'refused_by_core', message }))
    return { outcome: 'invalid', errors: findings }
  }
  // Cores 11.0 to 12.0.8 refuse a taken third-party login with the text `translated`.
  const holder = await findHolder(core, identity, options)
  // If another process has created the account since the look-up, the next call finds it.
  if (typeof holder === 'object') return { outcome: 'conflict', codes: [holder.code] }
  const known = errors.map(errorCodeOf).filter((code) => code !== undefined)
  const why = known.length === 0 ? 'with a text that is not known' : known.join(', ')
  throw new CoreError(`POST /bulk-import/import: the core answered 400: ${why}`, {
    code: 'bad_request',
    outcome: 'unknown',
    status: 400,
  })
}
