import { expect, it } from 'vitest'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'
import { mutatedFunction, openMutated } from './mutated-store.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

/** Long enough for a request of another store on a busy machine. */
const PAUSE_S = 3
const LOCKS = /is_locked := pg[^;]*;/

/** Resolves when a store has come to its pause. */
const paused = (): Promise<void> =>
  until('a statement that waits', async () => {
    const sleeping = "select 1 from pg_stat_activity where wait_event = 'PgSleep'"
    return (await ledger.query(sleeping)).length > 0
  })

it.each([
  { isolation: undefined, outcome: 'finished', inVain: 0 },
  // The snapshot of the whole transaction is older than the lock; a plain insert of the record notices.
  { isolation: 'repeatable read', outcome: 'overtaken', inVain: 1 },
] as const)(
  'a run that another overtakes before its lock, at $isolation: $outcome, and one effect',
  async ({ isolation, outcome, inVain }) => {
    const slowly = (locks: string) => `perform pg_catalog.pg_sleep(${PAUSE_S}); ${locks}`
    const { sql, mutation } = mutatedFunction('slow', LOCKS, slowly)
    await ledger.query(sql)
    const slow = openMutated(ledger.url, mutation, isolation)
    const quick = openMutated(ledger.url, () => ({}))
    await quick.write(newKey(), 'equal')
    const key = newKey()
    const first = slow.write(key, 'equal')
    await paused()
    expect(await quick.write(key, 'equal')).toMatchObject({ end: 'result_kept' })
    expect(await first).toMatchObject({ outcome })
    expect([slow.handled, await ledger.effects(key)]).toEqual([inVain, 1])
  },
)
