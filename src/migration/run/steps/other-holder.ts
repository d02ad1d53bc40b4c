import type { ImportUser } from '../../core/import-user.js'
import type { EntryOf } from '../state/entry.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'
import type { Work } from '../work.js'
import type { LoginLines } from './login-lines.js'

/** Of these nobody gets an account with the record that is there. */
const WITHOUT_ACCOUNT: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.invalid,
  IDENTITY.failed,
  IDENTITY.missing,
  IDENTITY.left_out,
])

interface OtherHolder {
  /** Of the corrections. */
  readonly line: number
  /** The line that has the same login, and of what. */
  readonly where: string
}

/** A record, of the source or of corrections before, that has a login of the corrections. */
export async function findOtherHolder(
  work: Work,
  { replaced, leftOut }: Pick<EntryOf<'corrected'>, 'replaced' | 'leftOut'>,
  logins: LoginLines,
): Promise<OtherHolder | undefined> {
  if (replaced.length === 0) return undefined
  const { state } = work.ledger
  const corrected = new Set([...replaced, ...leftOut].map(([ordinal]) => ordinal))
  for (const [from, name] of [
    'the source',
    ...state.corrections.map((each) => each.name),
  ].entries()) {
    for await (const { ordinal, value, line } of work.survey.records(from)) {
      if (state.recordsFrom[ordinal] !== from || corrected.has(ordinal)) continue
      if (WITHOUT_ACCOUNT.has(stateOf(state, ordinal))) continue
      const taken = logins.lineOf(value as unknown as ImportUser)
      if (taken !== undefined) return { line: taken, where: `Line ${line} of ${name}` }
    }
  }
  return undefined
}
