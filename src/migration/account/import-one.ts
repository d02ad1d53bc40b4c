import type { CallOptions, CoreClient, CoreUser, DirectImport } from '../core/core-client.js'
import { CoreError } from '../core/core-error.js'
import {
  conflictCodeOf,
  errorCodeOf,
  isValidationText,
  withoutRecordValues,
} from '../core/core-texts.js'
import type { ImportUser } from '../core/import-user.js'
import { externalUserIdOf } from '../record-validation/normalise.js'
import type { UserFinding } from '../record-validation/user-finding.js'
import { validateUser } from '../record-validation/validate-user.js'
import { findTakenLogin } from './conflicting-account.js'

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
    return await importAs(externalUserId, { core, user, options })
  } catch (error) {
    throw error instanceof CoreError ? unknownOutcome(error) : error
  }
}

interface Import {
  readonly core: CoreClient
  readonly user: ImportUser
  readonly options: CallOptions
}

async function importAs(
  externalUserId: string,
  { core, user, options }: Import,
): Promise<ImportOneResult> {
  const answer = await catchCoreError(core.importUser(user, options))
  const coreUserId = await core.coreIdOf(externalUserId, options)
  if (coreUserId !== undefined) {
    const isCreated = !(answer instanceof CoreError) && answer.outcome === 'created'
    const account = isCreated ? answer.user : await core.user(coreUserId, options)
    if (account === undefined || !isAccountOf(externalUserId, account)) {
      throw contradiction('the account has another id')
    }
    return { outcome: isCreated ? 'created' : 'existing', userId: account.id, coreUserId }
  }
  if (answer instanceof CoreError) throw answer
  if (answer.outcome === 'created') throw contradiction('the account has no external id')
  if (await isThirdPartyLoginTaken(answer.errors, { core, user, options })) {
    // Another process may have created the account since the look-up. Then `judgeRejection` throws.
    const hasAccountNow = (await core.coreIdOf(externalUserId, options)) !== undefined
    if (!hasAccountNow) return { outcome: 'conflict', codes: ['E005'] }
  }
  return judgeRejection(answer.errors, user)
}

/** A sign-in may have linked the account to another one, whose id the core then returns. */
const isAccountOf = (externalUserId: string, { id, loginMethods }: CoreUser): boolean =>
  id === externalUserId || loginMethods.some(({ recipeUserId }) => recipeUserId === externalUserId)

/** Returns a CoreError instead of throwing it, because the look-up decides the result. */
const catchCoreError = (reply: Promise<DirectImport>): Promise<DirectImport | CoreError> =>
  reply.catch((error: unknown) => {
    if (error instanceof CoreError) return error
    throw error
  })

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

/** The whole text with which cores 11.0 to 12.0.8 refuse a taken third-party login. Other cores send E005. */
const UNSPECIFIC_REFUSAL = 'translated'

/** Whether the core refused the user because another account has one of its third-party logins. */
async function isThirdPartyLoginTaken(
  texts: readonly string[],
  { core, user, options }: Import,
): Promise<boolean> {
  if (!texts.every((text) => text.trim() === UNSPECIFIC_REFUSAL)) return false
  // Looks up only the third-party login, because a taken e-mail address has a code of its own.
  const loginMethods = user.loginMethods
    .filter(({ recipeId }) => recipeId === 'thirdparty')
    .map(({ email: _, isPrimary: __, ...method }) => method)
  return (await findTakenLogin(core, { loginMethods }, options)) !== undefined
}

/**
 * Classifies the texts with which the core refuses to import a user. The core uses the same status for
 * errors of its database and of the user, so only known texts count as the fault of the user.
 *
 * @throws CoreError with the outcome `unknown` for any other text.
 */
function judgeRejection(texts: readonly string[], user: ImportUser): ImportOneResult {
  const codes = texts.map(conflictCodeOf).filter((code) => code !== undefined)
  if (codes.length === texts.length) return { outcome: 'conflict', codes: [...new Set(codes)] }
  if (texts.every(isValidationText)) {
    const errors = texts.map((text) => ({
      field: '',
      code: 'refused_by_core',
      message: withoutRecordValues(text, user),
    }))
    return { outcome: 'invalid', errors }
  }
  const known = texts.map(errorCodeOf).filter((code) => code !== undefined)
  const why = known.length === 0 ? 'with a text that is not known' : known.join(', ')
  throw new CoreError(`POST /bulk-import/import: the core answered 400: ${why}`, {
    code: 'bad_request',
    outcome: 'unknown',
    status: 400,
  })
}
