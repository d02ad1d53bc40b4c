import type { MigrationReport } from '../../../src/migration/run/report.js'
import type { SimulatedCore } from '../../migration/run/support/simulated-core.js'
import { isObstructed, type MigrationStory, nameOf } from './story.js'

/** What a migration has left. */
interface Outcome {
  readonly core: SimulatedCore
  readonly reports: readonly MigrationReport[]
  /** What was wrong while it happened. */
  readonly faults: readonly string[]
  readonly leftOut: ReadonlySet<string>
}

/** What a migration promises: each identity has one account, or is left out, and nobody is staged twice. */
export function judgeMigration(
  story: MigrationStory,
  { core, reports, faults, leftOut }: Outcome,
): string[] {
  const broken = [...faults]
  const states = reports.map(({ state }) => state)
  const counts = reports.at(-1)?.counts
  if (counts?.reconciled !== story.users - leftOut.size || counts.left_out !== leftOut.size)
    broken.push(`counts: ${JSON.stringify(counts)}`)
  // Where the hook makes the user's account first, nobody else can take the login later.
  const isFirst = (user: number): boolean =>
    story.conflictsAreLate && story.hook.some((each) => each.user === user)
  const isConflict = story.conflicts.some((user) => user < story.users && !isFirst(user))
  if (isConflict && !states.includes('to_correct'))
    broken.push('conflict: nobody has to correct it')
  for (let user = 0; user < story.users; user += 1) {
    const name = nameOf(user)
    if (core.accounts.has(name) === leftOut.has(name)) broken.push(`account: of ${name}`)
    const staged = core.staged.get(name) ?? 0
    if (story.isInTime && staged > (isObstructed(story, user) ? 2 : 1))
      broken.push(`staged: ${name} ${staged} times`)
  }
  if (story.isInTime && states.includes('to_reconcile'))
    broken.push('late: somebody has to look again')
  if (core.rows_.length > 0) broken.push(`left: ${core.rows_.length} rows`)
  return broken
}
