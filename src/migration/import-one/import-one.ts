import type { CallOptions, CoreClient, DirectImport } from '../core/core-client.js'
import { CoreError } from '../core/core-error.js'
import type { ImportUser } from '../core/import-user.js'
import type { CoreUser } from '../core/reply.js'
import { externalUserIdOf } from '../record-validation/external-user-id.js'
import type { UserFinding } from '../record-validation/user-finding.js'
import { validateUser } from '../record-validation/validate-user.js'
import { fieldWithoutJson } from './field-without-json.js'
import { isPairTaken } from './pair-taken.js'
import { judgeRejection } from './rejection.js'

/** What importing one user came to. */
export type ImportOneResult =
  /** There is one account, as the user says. */
  | {
      /** `existing`: there was an account under the external id, from this call or another. */
      readonly outcome: 'created' | 'existing'
      /** The core's `user.id`: the external id, unless the account is linked to another since. */
      readonly userId: string
      /** The account's id in the core. */
      readonly coreUserId: string
    }
  /**
   * A login, an id or another unique value of the user belongs to another account. `codes`: the core's,
   * such as `E003`, or `unknown_conflict`.
   */
  | { readonly outcome: 'conflict'; readonly codes: readonly string[] }
  /** The core would not take it; nothing was sent. */
  | { readonly outcome: 'invalid'; readonly errors: readonly UserFinding[] }

/**
 * Imports one user at once, without staging. May be repeated, with the same user: there is never a
 * second account. The external id, which is required, decides what has become of it whenever the
 * core answers other than with success, for a refusal too can follow a success of the same call.
 *
 * @throws CoreError with the outcome `unknown` when neither an account nor the user is to blame:
 * repeat it. The reason of the signal, after which the account may be there as well.
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
  const unwritable = fieldWithoutJson(user)
  if (unwritable !== undefined) {
    const error = { field: unwritable, code: 'wrong_type', message: 'This has no form in JSON.' }
    return { outcome: 'invalid', errors: [error] }
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
  const answer = await answerOf(core.importUser(user, options))
  const coreUserId = await core.coreIdOf(externalUserId, options)
  if (coreUserId !== undefined) {
    const isCreated = !(answer instanceof CoreError) && answer.outcome === 'created'
    const account = isCreated ? answer.user : await core.user(coreUserId, options)
    if (account === undefined || !isUnder(externalUserId, account)) {
      throw contradiction('the account has another id')
    }
    return { outcome: isCreated ? 'created' : 'existing', userId: account.id, coreUserId }
  }
  if (answer instanceof CoreError) throw answer
  if (answer.outcome === 'created') throw contradiction('the account has no external id')
  if (await isPairTaken(answer.errors, { core, user, options })) {
    // A call of another process may have made the account since it was looked up.
    const isOwn = (await core.coreIdOf(externalUserId, options)) !== undefined
    if (!isOwn) return { outcome: 'conflict', codes: ['E005'] }
  }
  return judgeRejection(answer.errors)
}

/** A sign-in may have linked the account to another, of which the core then shows the id. */
const isUnder = (externalUserId: string, { id, loginMethods }: CoreUser): boolean =>
  id === externalUserId || loginMethods.some(({ recipeUserId }) => recipeUserId === externalUserId)

/** An error is an answer as well: only the look-up decides. */
const answerOf = (asked: Promise<DirectImport>): Promise<DirectImport | CoreError> =>
  asked.catch((error: unknown) => {
    if (error instanceof CoreError) return error
    throw error
  })

const contradiction = (why: string): CoreError =>
  new CoreError(`POST /bulk-import/import: ${why}`, { code: 'malformed_reply', outcome: 'unknown' })

/** Even where this call was refused: an earlier one with the same user may have succeeded. */
function unknownOutcome({ message, code, status }: CoreError): CoreError {
  return new CoreError(message, {
    code,
    outcome: 'unknown',
    ...(status !== undefined && { status }),
  })
}
