import { trimmed } from '../../record-validation/stored-form.js'
import type { UserFinding } from '../../record-validation/user-finding.js'
import { validateUser } from '../../record-validation/validate-user.js'
import type { Correction, OpenCorrections } from '../../source/corrections.js'
import type { MigrationContext } from '../migration-context.js'
import { MigrationError } from '../migration-error.js'
import { replacementsIn, userOf } from '../source-index.js'
import { IDENTITY_STATE, type IdentityCode } from '../state/identity-state.js'
import type { EntryOf } from '../state/journal-entry.js'
import { identityCode } from '../state/run-state.js'
import { readCatalogue } from './examine-source.js'
import { createLoginIndex, type LoginIndex, lookUpLogins } from './login-conflicts.js'
import { recordPosition } from './records.js'
import { assertCorrectable, recordsInUse } from './retry-failed.js'

type Corrected = Omit<EntryOf<'corrected'>, 'type' | 'source'>

/**
 * Checks all corrections before any of them is applied.
 *
 * @throws MigrationError `bad_corrections` at the first correction that does not fit the state of its
 * identity, or whose user the core would not accept.
 */
export async function checkCorrections(
  ctx: MigrationContext,
  open: OpenCorrections,
): Promise<Corrected & { readonly digest: string }> {
  assertCorrectable(ctx)
  const logins = createLoginIndex()
  const checkUser = await createUserCheck(ctx, logins)
  const corrected: Corrected = { replaced: [], leftOut: [], accepted: [] }
  for await (const correction of open.corrections(ctx.signal)) {
    const line = lineOf(correction)
    const recordIndex = recordIndexOf(ctx, correction, line)
    if (correction.type === 'replace') {
      checkUser(correction.record.value, line)
      corrected.replaced.push([recordIndex, line])
    } else {
      const list = correction.type === 'accept' ? corrected.accepted : corrected.leftOut
      list.push([recordIndex, line, correction.reason])
    }
  }
  await assertLoginsFree(ctx, { corrected, open, logins })
  return { ...corrected, digest: open.digest() }
}

interface CorrectedRecords {
  readonly corrected: Corrected
  readonly open: OpenCorrections
  /** Logins of the replacement records, with their lines in the corrections. */
  readonly logins: LoginIndex
}

/** Checks the replacement records against all other records, read again to avoid keeping their logins in memory. */
async function assertLoginsFree(
  ctx: MigrationContext,
  { corrected: { replaced, leftOut }, open, logins }: CorrectedRecords,
): Promise<void> {
  if (replaced.length === 0) return
  const recordIndexes = new Set([...replaced, ...leftOut].map(([recordIndex]) => recordIndex))
  for await (const record of recordsInUse(ctx, recordIndexes)) {
    const line = logins.find(userOf(record))
    if (line === undefined) continue
    throw objection(loginTwice(recordPosition(ctx, record.recordIndex)), line)
  }
  const replacements = replacementsIn(open.corrections(ctx.signal), ctx.sourceIndex)
  const { taken } = await lookUpLogins(ctx, replacements)
  const [first] = replaced.filter(([recordIndex]) => taken.has(recordIndex))
  if (first === undefined) return
  const [recordIndex, line] = first
  throw objection(loginTaken(taken.get(recordIndex) ?? ''), line)
}

const loginTwice = (otherRecord: string): UserFinding => ({
  field: 'loginMethods',
  code: 'login_twice',
  message: `${otherRecord} has the same login, and a login belongs to one account.`,
})

const loginTaken = (heldBy: string): UserFinding => ({
  field: 'loginMethods',
  code: 'login_taken',
  message: `The account ${heldBy} has a login of the record.`,
})

const objection = ({ code, field, message }: UserFinding, line: number): MigrationError =>
  new MigrationError('bad_corrections', `${code} in ${field}: ${message}`, line)

const lineOf = (correction: Correction): number =>
  correction.type === 'replace' ? correction.record.line : correction.line

const WITHOUT_ACCOUNT: readonly IdentityCode[] = [
  IDENTITY_STATE.invalid,
  IDENTITY_STATE.failed,
  IDENTITY_STATE.missing,
]

const FITTING: Readonly<Record<Correction['type'], readonly IdentityCode[]>> = {
  replace: WITHOUT_ACCOUNT,
  leaveOut: WITHOUT_ACCOUNT,
  accept: [IDENTITY_STATE.differs, IDENTITY_STATE.shared],
}

const FITTING_IN_WORDS: Readonly<Record<Correction['type'], string>> = {
  replace: 'replaced: it is neither invalid, failed nor missing',
  leaveOut: 'left out: it is neither invalid, failed nor missing',
  accept: 'accepted: it neither differs nor is shared',
}

function recordIndexOf(
  ctx: MigrationContext,
  { type, externalUserId }: Correction,
  line: number,
): number {
  const recordIndex = ctx.sourceIndex.recordIndexOf(trimmed(externalUserId))
  if (recordIndex === undefined) {
    throw new MigrationError('bad_corrections', 'the source has no such identity', line)
  }
  if (!FITTING[type].includes(identityCode(ctx.journaled.state, recordIndex))) {
    const message = `this identity cannot be ${FITTING_IN_WORDS[type]}`
    throw new MigrationError('bad_corrections', message, line)
  }
  return recordIndex
}

type CheckUser = (value: Readonly<Record<string, unknown>>, line: number) => void

async function createUserCheck(ctx: MigrationContext, logins: LoginIndex): Promise<CheckUser> {
  const { tenants, roles, features } = await readCatalogue(ctx)
  const context = {
    tenants: new Set(tenants.map(({ tenantId }) => tenantId)),
    roles: new Set(roles),
    features: new Set(features),
  }
  const accepted = new Set<string>(ctx.settings.acceptWarnings)
  return (value, line) => {
    const validation = validateUser(value, context)
    const [first] = [
      ...(validation.ok ? [] : validation.errors),
      ...validation.warnings.filter(({ code }) => !accepted.has(code)),
    ]
    if (first !== undefined) throw objection(first, line)
    if (!validation.ok) return
    const earlier = logins.find(validation.user)
    if (earlier !== undefined) throw objection(loginTwice(`Line ${earlier}`), line)
    logins.add(validation.user, line)
  }
}
