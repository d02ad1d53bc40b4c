import type { CoreClient } from '../../../../src/migration/core/core-client.js'
import { CoreError } from '../../../../src/migration/core/core-error.js'
import type { MigrationOptions } from '../../../../src/migration/run/migration.js'
import { openMigrationWith } from '../../../../src/migration/run/open-migration.js'
import type { IdentityReport } from '../../../../src/migration/run/report.js'
import { memoryJournal } from './memory-journal.js'
import { people, sourceOf } from './people.js'
import { type Plan, simulatedCore } from './simulated-core.js'
import { simulatedTime } from './simulated-time.js'

export const USERS = 10

interface Circumstances extends Partial<Plan> {
  readonly users?: number
  readonly jobEveryMs?: number
  /** Users of a chunk. */
  readonly jobUsers?: number
}

/** A migration of some people into a simulated core; `overrides` are its faults. */
export function scene(
  overrides: Partial<CoreClient> = {},
  options: Partial<MigrationOptions> = {},
  { users = USERS, jobEveryMs = 3000, jobUsers = 4, ...plan }: Circumstances = {},
) {
  const time = simulatedTime()
  const simulated = simulatedCore({ time, fate: () => 'done', ...plan })
  time.every(jobEveryMs, () => simulated.runJob(jobUsers))
  const journal = memoryJournal()
  const open = (more: Partial<MigrationOptions> = {}) =>
    openMigrationWith(
      {
        core: { ...simulated, ...overrides },
        source: sourceOf(people(users)),
        journal,
        batchUsers: 4,
        ...options,
        ...more,
      },
      time,
    )
  return { time, simulated, journal, open }
}

export async function listOf(identities: AsyncIterable<IdentityReport>): Promise<IdentityReport[]> {
  const list: IdentityReport[] = []
  for await (const identity of identities) list.push(identity)
  return list
}

export const refusal = (code: CoreError['code']) =>
  new CoreError(`the core says ${code}`, { code, outcome: 'refused' })
