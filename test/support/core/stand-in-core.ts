import {
  type IdentityCore,
  type IdentityCoreOptions,
  startIdentityCore,
} from './identity-core/identity-core.js'
import type { Row } from './identity-core/tables.js'

export type StandInCore = IdentityCore

/** Starts a stand-in core. Its import job runs only when a test calls `runJob`, unless told otherwise. */
export const startStandInCore = (options: IdentityCoreOptions = {}): Promise<StandInCore> =>
  startIdentityCore({ job: { intervalMs: 'off' }, ...options })

/** Runs the import job until a run of it changes no row. */
export async function runJobToEnd(core: Pick<IdentityCore, 'tables' | 'runJob'>): Promise<void> {
  const waiting = () => rowsOf(core).map(({ id, status }) => `${id} ${status === 'FAILED'}`)
  let before: string | undefined
  for (let now = waiting().join(); now !== before; now = waiting().join()) {
    before = now
    await core.runJob()
  }
}

/** The rows that wait or have failed, in the order in which they were staged. */
export const rowsOf = ({ tables }: Pick<IdentityCore, 'tables'>): Row[] => [...tables.rows.values()]

/** The rows of users with this text in what was staged of them. */
export const rowsWith = (text: string, core: Pick<IdentityCore, 'tables'>): Row[] =>
  rowsOf(core).filter(({ user }) => JSON.stringify(user).includes(text))

export function deleteAllRows({ tables }: Pick<IdentityCore, 'tables'>): void {
  tables.change({ rowsGone: [...tables.rows.keys()] })
}

/** Reads from the core's tables the core's id of each external id, which tests compare with a migration. */
export async function accountsByExternalId({
  tables,
}: Pick<IdentityCore, 'tables'>): Promise<ReadonlyMap<string, string>> {
  const { coreIds, accountOf } = tables
  return new Map([...coreIds].map(([externalId, id]) => [externalId, accountOf.get(id) ?? '']))
}
