import type { Correction, OpenCorrections } from '../../source/corrections.js'
import { createDigestSet, type DigestSet } from '../../source/identity-index.js'
import { trimmed } from '../../user/core-text.js'
import { loginKeysOf } from '../../user/login-keys.js'
import { validateUser } from '../../user/validate-user.js'
import { MigrationError } from '../migration-error.js'
import type { EntryOf } from '../state/entry.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'
import type { Work } from '../work.js'
import { assertCorrectable } from './again.js'
import { LOGIN_TWICE } from './examine-source.js'
import { findingText } from './finding-text.js'
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
  const judge = await userJudge(work)
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
  return { ...corrected, digest: pass.digest() }
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

async function userJudge(work: Work): Promise<JudgeUser> {
  const { tenants, roles, features } = await readCatalogue(work)
  const context = {
    tenants: new Set(tenants.map(({ tenantId }) => tenantId)),
    roles: new Set(roles),
    features: new Set(features),
  }
  const accepted = new Set<string>(work.settings.acceptWarnings)
  const logins = createDigestSet()
  return (value, line) => {
    const validation = validateUser(value, context)
    const twice = validation.ok && hasKnownLogin(validation.user, logins) ? [LOGIN_TWICE] : []
    const objections = [
      ...(validation.ok ? [] : validation.errors),
      ...[...validation.warnings, ...twice].filter(({ code }) => !accepted.has(code)),
    ]
    const [first] = objections
    if (first === undefined) return
    const message = findingText(first, value)
    throw new MigrationError('bad_corrections', `${first.code} in ${first.field}: ${message}`, line)
  }
}

const hasKnownLogin = (user: Parameters<typeof loginKeysOf>[0], logins: DigestSet): boolean =>
  loginKeysOf(user).filter((key) => !logins.add(key)).length > 0
