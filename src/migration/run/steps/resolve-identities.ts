import { findHolder, findTakenLogin, type TakenLogin } from '../../account/find-account.js'
import { importAndFind } from '../../account/import-one.js'
import type { CoreError } from '../../core/core-error.js'
import {
  conflictCodeOf,
  errorCodeOf,
  isValidationText,
  type RowError,
  readRowError,
} from '../../core/core-texts.js'
import {
  type IndexedRecord,
  inGroups,
  lookUpEach,
  type MigrationContext,
  type RunRow,
  rowEntry,
  unrecordedRows,
  userOf,
} from '../records.js'
import type { EntryOf, Finding, RefusedRecord } from '../state/journal-entry.js'
import { countOf, type IdentityCode, identityCode } from '../state/run-state.js'
import { countLostReply, withGracePeriod } from './calls-and-lost-replies.js'

/**
 * Journals each failed row of this run, with its reason. If a row may have failed because of another row
 * of its chunk, the run deletes it and imports its user directly, which shows whether that user is at fault.
 */
export async function collect(ctx: MigrationContext): Promise<void> {
  const { journaled, settings } = ctx
  let failed = 0
  await inGroups(
    unrecordedRows(ctx, 'FAILED'),
    settings.lookUps,
    (found) => failedRowEntry(ctx, found),
    async (entries) => {
      failed += entries.filter(({ as }) => as === 'failed').length
      // `unresolved` comes last: a failed row of the same identity after it would set the identity to `failed`.
      await journaled.write(entries.toSorted((one, other) => order(one) - order(other)))
    },
  )
  if (failed > 0) ctx.emit('row_failed', { users: failed })
  await journaled.write({ type: 'rest', phase: 'reconcile' })
}

const order = ({ as }: EntryOf<'row'>): number => (as === 'unresolved' ? 1 : 0)

/** The row is `unresolved` if its error does not show whether this or another row of the chunk is at fault. */
async function failedRowEntry(ctx: MigrationContext, found: RunRow): Promise<EntryOf<'row'>> {
  const { core, signal } = ctx
  const { row, recordIndex, externalUserId } = found
  const error = row.errorMessage === undefined ? undefined : readRowError(row.errorMessage)
  const about = { ...rowEntry(ctx, found), ...describeRowError(error) }
  const isDuplicate =
    isDecided(ctx, recordIndex) || (await core.coreIdOf(externalUserId, { signal })) !== undefined
  if (isDuplicate) return { ...about, as: 'duplicate' }
  if (error !== undefined && isBelieved(error)) return { ...about, as: 'failed' }
  const taken = await findTakenLogin(core, row, { signal })
  if (taken === undefined) return { ...about, as: 'unresolved' }
  const { heldBy } = taken
  if (error?.kind === 'login_taken') return { ...about, as: 'failed', heldBy }
  return { ...about, as: 'failed', heldBy, code: taken.code, text: takenText(taken) }
}

/** Whether no other row is the cause: validation is about the row itself, a code that blames no user about the core. */
const isBelieved = ({ kind, code }: RowError): boolean =>
  kind === 'validation' || (kind === 'chunk_failed' && code !== 'chunk_failed')

/** Whether the row is from an earlier attempt, after which a person or the run has decided on the identity. */
const isDecided = ({ journaled }: MigrationContext, recordIndex: number): boolean =>
  DECIDED.has(identityCode(journaled.state, recordIndex))

const DECIDED: ReadonlySet<IdentityCode> = new Set(['pending', 'to_import', 'left_out', 'accepted'])

const describeRowError = (
  error: RowError | undefined,
): { readonly code?: string; readonly text?: string } =>
  error === undefined
    ? {}
    : { text: error.text, ...(error.code !== undefined && { code: error.code }) }

/** Resolves each identity in a state. */
const resolveEach = (
  ctx: MigrationContext,
  state: IdentityCode,
  resolveOne: (record: IndexedRecord) => Promise<Finding | undefined>,
): Promise<void> => {
  const isWanted = (recordIndex: number) => identityCode(ctx.journaled.state, recordIndex) === state
  return lookUpEach(ctx, 'settled', isWanted, resolveOne)
}

/**
 * Looks up each identity whose row the run has deleted. Either it has an account, or another account has
 * one of its logins, or it is imported directly.
 */
export const resolveIdentities = (ctx: MigrationContext): Promise<void> =>
  resolveEach(ctx, 'unresolved', async (record) => {
    const { core, signal } = ctx
    const { recordIndex, externalUserId } = record
    const holder = await findHolder(core, { externalUserId, user: userOf(record) }, { signal })
    if (holder === 'own') return { hasAccount: [recordIndex] }
    return holder === undefined ? { toImport: [recordIndex] } : takenBy(record, holder)
  })

const refused = (
  { recordIndex, line }: IndexedRecord,
  why: Omit<RefusedRecord, 'record' | 'line'>,
): Finding => ({ refused: [{ record: recordIndex, line, ...why }] })

/** Returns a refusal because another account has one of the logins. */
const takenBy = (record: IndexedRecord, taken: TakenLogin): Finding =>
  refused(record, { ...taken, text: takenText(taken) })

/** Returns the error text of the core, without the login. */
const takenText = ({ code }: TakenLogin): string => `${code}: ${TEXTS[code]}`

const TEXTS: Readonly<Record<TakenLogin['code'], string>> = {
  E003: 'A user with email … already exists in emailpassword loginMethod.',
  E005: 'A user with thirdPartyId … and thirdPartyUserId … already exists in thirdparty loginMethod.',
  E006: 'A user with email … already exists in passwordless loginMethod.',
  E007: 'A user with phoneNumber … already exists in passwordless loginMethod.',
  E022: 'The account info is already associated with another primary user.',
}

const NO_ACCOUNT_FOUND = 'No account has this login: stage the record again with this code.'

/**
 * Imports each `to_import` identity directly, one user per call, so that a refusal can only concern this
 * user. The core refuses to import an identity twice, so a run may repeat calls whose result an earlier
 * process did not journal.
 *
 * An error of the core or its database may look like a refusal. So a call that fails without a known
 * reason is repeated after all other calls.
 */
export async function importDirectly(ctx: MigrationContext): Promise<void> {
  const { journaled, settings, signal, timing } = ctx
  await resolveEach(ctx, 'to_import', async (record) => {
    const found = await importOnce(ctx, record)
    return isUnexplained(found) ? undefined : found
  })
  if (countOf(journaled.state, 'to_import') === 0) return
  await timing.sleep(settings.settleSeconds * 1000, signal)
  await resolveEach(ctx, 'to_import', (record) => importOnce(ctx, record))
}

const isUnexplained = (found: Finding | undefined): boolean =>
  found?.refused?.[0]?.code === 'chunk_failed'

/** Returns `undefined` if there is no reply and no account. */
async function importOnce(
  ctx: MigrationContext,
  record: IndexedRecord,
): Promise<Finding | undefined> {
  const { core, signal, settings, timing } = ctx
  const { recordIndex, externalUserId } = record
  const send = () =>
    withGracePeriod(signal, (late) => core.importUser(userOf(record), { signal: late }))
  const attempt = await importAndFind(core, { externalUserId, send }, { signal })
  if (attempt.end !== 'no_answer') ctx.consecutiveLostReplies = 0
  if (attempt.end === 'account') return { hasAccount: [recordIndex] }
  if (attempt.end === 'rejected') return resolveRejection(ctx, record, attempt.errors)
  const { error } = attempt
  if (isAboutUser(error)) return chunkFailed(record, error.message)
  if (error.outcome === 'refused') throw error
  await timing.sleep(settings.settleSeconds * 1000, signal)
  const hasAccount = (await core.coreIdOf(externalUserId, { signal })) !== undefined
  if (hasAccount) return { hasAccount: [recordIndex] }
  countLostReply(ctx, error)
  return undefined
}

/** The core sends these statuses if it gives no reason. Any other status may come from a proxy. */
const isAboutUser = ({ status }: CoreError): boolean => status === 400 || status === 500

async function resolveRejection(
  { core, signal }: MigrationContext,
  record: IndexedRecord,
  errors: readonly string[],
): Promise<Finding> {
  const user = userOf(record)
  const taken = await findTakenLogin(core, user, { signal })
  if (taken !== undefined) return takenBy(record, taken)
  const texts = errors.join(', ')
  const code = errorCodeOf(texts) ?? conflictCodeOf(texts)
  const isInvalid = code === undefined && errors.every(isValidationText)
  const { text, kind, ...read } = readRowError(isInvalid ? `[${texts}]` : texts)
  if (code === undefined && !isInvalid) return chunkFailed(record, text)
  return refused(record, {
    ...(code !== undefined && { code }),
    ...(isInvalid && read),
    text: kind === 'login_taken' ? `${text} ${NO_ACCOUNT_FOUND}` : text,
  })
}

const REFUSED_DIRECTLY = 'The core also refuses the user in a separate call'

const chunkFailed = (record: IndexedRecord, why: string): Finding =>
  refused(record, { code: 'chunk_failed', text: `${REFUSED_DIRECTLY}: ${why}` })
