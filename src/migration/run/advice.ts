import type { MigrationState } from './report.js'
import { IDENTITY } from './state/identity-state.js'
import { countsOf, type RunState } from './state/run-state.js'

/** These fail whoever is in the same chunk: the core itself is at fault, not the record. */
const BLAMES_NOBODY: ReadonlySet<number> = new Set([2, 4, 8, 18, 19, 33, 36, 37, 40])

const BY_STATE: Readonly<Partial<Record<MigrationState, string>>> = {
  preflight_failed: 'Mend what the findings name, then run again.',
  stalled:
    'Nothing changes at the core. Turn its import job on if it is off, and run again; else unblock, then run.',
  interrupted: 'Run goes on where this has ended.',
  core_fault: 'Mend what stands between here and the core, then run again.',
  complete: 'Passwords cannot be read back: let some people sign in before the source is deleted.',
}

/** What a person does next, a sentence each. */
export function adviceFor(
  state: RunState,
  standing: MigrationState,
  fault: string | undefined,
): string[] {
  const counts = countsOf(state)
  const advice: (string | undefined)[] = [
    fault === undefined ? undefined : `The core: ${fault}`,
    BY_STATE[standing],
    state.blocked
      ? 'A deletion did not account for each row: look what else deletes rows, then reconcile.'
      : undefined,
    standing === 'complete' && state.lostSinceLook
      ? 'A call without reply may have landed since: reconcile once more before the end.'
      : undefined,
    ...failuresWithoutBlame(state),
    counts.invalid > 0 ? 'Correct the invalid records, or leave them out.' : undefined,
    counts.failed > 0 ? 'Correct the records that have failed, or leave them out.' : undefined,
    counts.missing > 0
      ? 'Who is missing has no account: correct the record to stage it again, or leave it out.'
      : undefined,
    counts.differs > 0
      ? 'Mend the accounts that differ and reconcile, or accept the differences.'
      : undefined,
    counts.shared > 0
      ? 'Some accounts are those of several identities: part them and reconcile, or accept it.'
      : undefined,
  ]
  return advice.filter((sentence) => sentence !== undefined)
}

function failuresWithoutBlame(state: RunState): string[] {
  const users = new Map<number, number>()
  state.failureCodes.forEach((code, ordinal) => {
    if (!BLAMES_NOBODY.has(code) || state.identities[ordinal] !== IDENTITY.failed) return
    users.set(code, (users.get(code) ?? 0) + 1)
  })
  return [...users].map(([number, count]) => {
    const code = `E${String(number).padStart(3, '0')}`
    return `${code} blames nobody and has failed ${count} users: mend the core, then correct --again ${code}.`
  })
}
