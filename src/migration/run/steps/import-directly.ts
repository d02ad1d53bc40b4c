import { findTakenLogin } from '../../account/conflicting-account.js'
import { readRowError } from '../../account/row-error.js'
import type { DirectImport } from '../../core/core-client.js'
import { CoreError } from '../../core/core-error.js'
import { conflictCodeOf, errorCodeOf, isValidationText } from '../../core/core-messages.js'
import type { ImportUser } from '../../core/import-user.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../read-source.js'
import { IDENTITY } from '../state/identity-state.js'
import { countOf } from '../state/run-state.js'
import { type Resolution, refusedFor, resolveEach } from './resolve-identities.js'
import { countLostCall } from './resolve-lost-reply.js'
import { inGrace } from './send-call.js'

const NO_ACCOUNT_FOUND = 'No account has this login: stage the record again with this code.'

/**
 * Imports each `to_import` identity directly, one user per call, so that a refusal can only concern this
 * user. The core refuses to import an identity twice, so a run may repeat calls whose result an earlier
 * process did not journal.
 *
 * An error of the core or its database may look like a refusal. So a call that fails without a known
 * reason is repeated after all other calls.
 */
export async function importDirectly(work: Work): Promise<void> {
  const { ledger, settings, signal, timing } = work
  await resolveEach(work, IDENTITY.to_import, async (record) => {
    const resolution = await importOnce(work, record)
    return isUnexplained(resolution) ? undefined : resolution
  })
  if (countOf(ledger.state, IDENTITY.to_import) === 0) return
  await timing.sleep(settings.settleSeconds * 1000, signal)
  await resolveEach(work, IDENTITY.to_import, (record) => importOnce(work, record))
}

const isUnexplained = (resolution: Resolution | undefined): boolean =>
  resolution?.as === 'refused' && resolution.code === 'chunk_failed'

/** Returns `undefined` if there is no reply and no account. */
async function importOnce(work: Work, record: SurveyedRecord): Promise<Resolution | undefined> {
  const { core, signal } = work
  const { ordinal, externalUserId } = record
  const answer = await answerOf(work, record)
  const hasAccount = async () => (await core.coreIdOf(externalUserId, { signal })) !== undefined
  if (!(answer instanceof CoreError)) work.lostInARow = 0
  if (await hasAccount()) return { as: 'hasAccount', record: ordinal }
  if (!(answer instanceof CoreError)) return refused(work, record, answer)
  if (isAboutUser(answer)) return chunkFailed(record, answer.message)
  if (answer.outcome === 'refused') throw answer
  await work.timing.sleep(work.settings.settleSeconds * 1000, signal)
  if (await hasAccount()) return { as: 'hasAccount', record: ordinal }
  countLostCall(work, answer)
  return undefined
}

async function answerOf(
  { core, signal }: Work,
  { value }: SurveyedRecord,
): Promise<DirectImport | CoreError> {
  const user = value as unknown as ImportUser
  try {
    return await inGrace(signal, (late) => core.importUser(user, { signal: late }))
  } catch (error) {
    if (error instanceof CoreError) return error
    throw error
  }
}

/** The core sends these statuses if it gives no reason. Any other status may come from a proxy. */
const isAboutUser = ({ status }: CoreError): boolean => status === 400 || status === 500

async function refused(
  { core, signal }: Work,
  record: SurveyedRecord,
  answer: DirectImport,
): Promise<Resolution> {
  if (answer.outcome === 'created') {
    const message = 'POST /bulk-import/import: the account has no external id'
    throw new CoreError(message, { code: 'malformed_reply', outcome: 'unknown' })
  }
  const user = record.value as unknown as ImportUser
  const taken = await findTakenLogin(core, user, { signal })
  if (taken !== undefined) return refusedFor(record, taken)
  const texts = answer.errors.join(', ')
  const code = errorCodeOf(texts) ?? conflictCodeOf(texts)
  const isInvalid = code === undefined && answer.errors.every(isValidationText)
  const { text, kind } = readRowError(isInvalid ? `[${texts}]` : texts, user)
  if (code === undefined && !isInvalid) return chunkFailed(record, text)
  return {
    as: 'refused',
    record: record.ordinal,
    line: record.line,
    ...(code !== undefined && { code }),
    text: kind === 'login_taken' ? `${text} ${NO_ACCOUNT_FOUND}` : text,
  }
}

const REFUSED_DIRECTLY = 'The core refuses the user in a call of its own as well'

const chunkFailed = ({ ordinal, line }: SurveyedRecord, why: string): Resolution => ({
  as: 'refused',
  record: ordinal,
  line,
  code: 'chunk_failed',
  text: `${REFUSED_DIRECTLY}: ${why}`,
})
