import type { Correction, OpenCorrections } from '../../source/corrections.js'
import { trimmed } from '../../user/core-text.js'
import type { UserFinding } from '../../user/finding.js'
import { validateUser } from '../../user/validate-user.js'
import { MigrationError } from '../migration-error.js'
import type { EntryOf } from '../state/entry.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'
import type { Work } from '../work.js'
import { assertCorrectable } from './again.js'
import { findingText } from './finding-text.js'
import { createLoginLines, type LoginLines, loginTwice } from './login-lines.js'
import { findOtherHolder } from './other-holder.js'
import { readCatalogue } from './preflight.js'

type Corrected = Omit<EntryOf<'corrected'>, 'type' | 'source'>

/**
 * Judges all corrections before any of them counts.
 *
 * @throws MigrationError `bad_corrections` at the first that does not fit its identity, or whose user
 * the core would not take.
 */
export async function judgeCorrections(
  work: Work,
  open: OpenCorrections,
): Promise<Corrected & { readonly digest: string }> {
  assertCorrectable(work)
  const logins = createLoginLines()
  const judge = await userJudge(work, logins)
  const corrected: Corrected = { replaced: [], leftOut: [], accepted: [] }
  const pass = open.pass({ signal: work.signal })
  for await (const correction of pass) {
    const line = lineOf(correction)
    const ordinal = ordinalOf(work, correction, line)
    if (correction.type === 'replace') {
      judge(correction.record.value, line)
      corrected.replaced.push([ordinal, line])
    } else {
      const list = correction.type === 'accept' ? corrected.accepted : corrected.leftOut
      list.push([ordinal, line, correction.reason])
    }
  }
  await assertLoginsFree(work, corrected, logins)
  return { ...corrected, digest: pass.digest() }
}

/** The others' records are read once more, and nothing is kept of them. */
async function assertLoginsFree(
  work: Work,
  corrected: Corrected,
  logins: LoginLines,
): Promise<void> {
  if (work.settings.acceptWarnings.includes('login_twice')) return
  const other = await findOtherHolder(work, corrected, logins)
  if (other === undefined) return
  throw objection(loginTwice(other.where), {}, other.line)
}

function objection(finding: UserFinding, value: unknown, line: number): MigrationError {
  const message = `${finding.code} in ${finding.field}: ${findingText(finding, value)}`
  return new MigrationError('bad_corrections', message, line)
}

const lineOf = (correction: Correction): number =>
  correction.type === 'replace' ? correction.record.line : correction.line

const NOT_TAKEN: readonly IdentityCode[] = [IDENTITY.invalid, IDENTITY.failed, IDENTITY.missing]

const FITTING: Readonly<Record<Correction['type'], readonly IdentityCode[]>> = {
  replace: NOT_TAKEN,
  leaveOut: NOT_TAKEN,
  accept: [IDENTITY.differs, IDENTITY.shared],
}

const FITTING_IN_WORDS: Readonly<Record<Correction['type'], string>> = {
  replace: 'replaced: it is neither invalid, failed nor missing',
  leaveOut: 'left out: it is neither invalid, failed nor missing',
  accept: 'accepted: it neither differs nor is shared',
}

function ordinalOf(work: Work, { type, externalUserId }: Correction, line: number): number {
  const ordinal = work.survey.ordinalOf(trimmed(externalUserId))
  if (ordinal === undefined) {
    throw new MigrationError('bad_corrections', 'the source has no such identity', line)
  }
  if (!FITTING[type].includes(stateOf(work.ledger.state, ordinal))) {
    const message = `this identity cannot be ${FITTING_IN_WORDS[type]}`
    throw new MigrationError('bad_corrections', message, line)
  }
  return ordinal
}

type JudgeUser = (value: Readonly<Record<string, unknown>>, line: number) => void

async function userJudge(work: Work, logins: LoginLines): Promise<JudgeUser> {
  const { tenants, roles, features } = await readCatalogue(work)
  const context = {
    tenants: new Set(tenants.map(({ tenantId }) => tenantId)),
    roles: new Set(roles),
    features: new Set(features),
  }
  const accepted = new Set<string>(work.settings.acceptWarnings)
  return (value, line) => {
    const validation = validateUser(value, context)
    const earlier = validation.ok ? logins.add(validation.user, line) : undefined
    const twice = earlier === undefined ? [] : [loginTwice(`Line ${earlier}`)]
    const objections = [
      ...(validation.ok ? [] : validation.errors),
      ...[...validation.warnings, ...twice].filter(({ code }) => !accepted.has(code)),
    ]
    const [first] = objections
    if (first !== undefined) throw objection(first, value, line)
  }
}
