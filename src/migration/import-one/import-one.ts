import { findHolder } from '../account/conflicting-account.js'
import type { CallOptions, CoreClient, DirectImport } from '../core/core-client.js'
import { CoreError } from '../core/core-error.js'
import { conflictCodeOf, errorCodeOf, isValidationText } from '../core/core-messages.js'
import type { ImportUser } from '../core/import-user.js'
import type { CoreUser } from '../core/reply.js'
import { externalUserIdOf } from '../record-validation/external-user-id.js'
import { fieldOf } from '../record-validation/field.js'
import type { UserFinding } from '../record-validation/user-finding.js'
import { validateUser } from '../record-validation/validate-user.js'

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

/**
 * The path of a value that JSON has no form for, such as a BigInt, or whose `toJSON` throws;
 * `undefined` when all can be written. Takes what is of a limited depth.
 */
function fieldWithoutJson(value: unknown, field = ''): string | undefined {
  if (isWritable(value)) return undefined
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const isList = Array.isArray(value)
  for (const [name, member] of members) {
    const place = isList ? `${field}[${name}]` : fieldOf(field, name)
    const found = fieldWithoutJson(member, place)
    if (found !== undefined) return found
  }
  return field
}

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

/** All that cores from 11.0 to 12.0.8 say of a provider's pair that is taken; others say E005. */
const PAIR_MAY_BE_TAKEN = 'translated'

/** Whether the core has refused the user because another account has a provider's pair of his. */
async function isPairTaken(
  texts: readonly string[],
  { core, user, options }: Import,
): Promise<boolean> {
  if (!texts.every((text) => text.trim() === PAIR_MAY_BE_TAKEN)) return false
  // By nothing but the pair: an e-mail address that is taken has a code of its own.
  const loginMethods = user.loginMethods
    .filter(({ recipeId }) => recipeId === 'thirdparty')
    .map(({ email: _, isPrimary: __, ...method }) => method)
  return (await findHolder(core, { loginMethods }, options)) !== undefined
}

/** What a refusal of a user that has no account says of it. */
type Judged =
  | { readonly outcome: 'conflict'; readonly codes: readonly string[] }
  | { readonly outcome: 'invalid'; readonly errors: readonly UserFinding[] }

/**
 * Judges the texts with which the core refuses to import a user. It gives a fault of its database the
 * same status as one of the user, so only what is known to blame the user does.
 *
 * @throws CoreError with the outcome `unknown` for anything else.
 */
function judgeRejection(texts: readonly string[]): Judged {
  const codes = texts.map(conflictCodeOf).filter((code) => code !== undefined)
  if (codes.length === texts.length) return { outcome: 'conflict', codes: [...new Set(codes)] }
  if (texts.every(isValidationText)) {
    const errors = texts.map((message) => ({ field: '', code: 'refused_by_core', message }))
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
