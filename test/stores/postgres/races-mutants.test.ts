import { expect, it } from 'vitest'
import { recordText } from '../../../src/stores/postgres/sql/statements.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'
import { type Mutation, mutatedFunction, openMutated } from './mutated-store.js'

// What makes a difference once in thousands of requests makes one each time where the server is told to
// wait in the right place. Each wrong order of statements stands beside the right one, which waits too.

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

/** Long enough for a request of another store on a busy machine. */
const PAUSE_MS = 3000
/** Resolves when a store has come to its pause. */
const paused = (): Promise<void> =>
  until('a statement that waits', async () => {
    const sleeping = "select 1 from pg_stat_activity where wait_event = 'PgSleep'"
    return (await ledger.query(sleeping)).length > 0
  })

const TRY = 'pg_catalog.pg_try_advisory_xact_lock'
const PAUSE = `pg_catalog.pg_sleep(${PAUSE_MS / 1000})::text is null`

/** The lock of the key as a parameter of the function `begin_run`. */
const KEY_LOCK = '$3'
const REAL_LOCKS = /is_locked := pg[^;]*;/
const REAL_LOOK_UP = /is_locked := pg[^;]*;[^;]*;/

const AS_IT_IS: Mutation = () => ({})

/** Makes a changed copy of the function `begin_run`. */
async function mutate(...given: Parameters<typeof mutatedFunction>): Promise<Mutation> {
  const { sql, mutation } = mutatedFunction(...given)
  await ledger.query(sql)
  return mutation
}

it('no handler runs for nothing: the look-up begins after the lock is taken', async () => {
  const lock = `case when ${PAUSE} then null else ${TRY}(${KEY_LOCK}) end`
  const apart = await mutate('apart', REAL_LOCKS, () => `is_locked := ${lock};`)
  const joined = await mutate(
    'joined',
    REAL_LOOK_UP,
    () => `with locked as materialized (select ${lock} as lock)
      select locked.lock, found.record into is_locked, stored
      from locked left join lateral (
        select ${recordText('$2')} as record from service_auth.idempotency where id = $1
      ) as found on true;`,
  )
  const overtake = async (mutation: Mutation) => {
    const slow = openMutated(ledger.url, mutation)
    const quick = openMutated(ledger.url, AS_IT_IS)
    await quick.write(newKey(), 'equal')
    const key = newKey()
    const first = slow.write(key, 'equal')
    await paused()
    expect(await quick.write(key, 'equal')).toMatchObject({ end: 'result_kept' })
    const outcome = await first
    expect(await ledger.effects(key)).toBe(1)
    return { outcome: outcome.outcome, inVain: slow.handled }
  }
  expect(await overtake(apart)).toEqual({ outcome: 'finished', inVain: 0 })
  expect(await overtake(joined)).toEqual({ outcome: 'overtaken', inVain: 1 })
})

it('a stale snapshot costs a run for nothing and never a second effect: a plain insert', async () => {
  /** The snapshot of the whole transaction is made here, before the lock. */
  const slow = await mutate(
    'stale',
    REAL_LOCKS,
    (locks) => `perform pg_catalog.pg_sleep(${PAUSE_MS / 1000}); ${locks}`,
  )
  const yielding: Mutation = (real) => ({
    ...slow(real),
    insertRecord(ids, keeping) {
      const { text, values } = real.insertRecord(ids, keeping)
      return { text: `${text} on conflict do nothing`, values }
    },
  })
  const overtake = async (mutation: Mutation) => {
    const stale = openMutated(ledger.url, mutation, 'repeatable read')
    const quick = openMutated(ledger.url, AS_IT_IS)
    await quick.write(newKey(), 'equal')
    const key = newKey()
    const first = stale.write(key, 'equal')
    await paused()
    await quick.write(key, 'equal')
    const { outcome } = await first
    return { outcome, effects: await ledger.effects(key) }
  }
  expect(await overtake(slow)).toEqual({ outcome: 'overtaken', effects: 1 })
  const wrong = await overtake(yielding)
  expect(wrong.effects === 2 || wrong.outcome !== 'overtaken', JSON.stringify(wrong)).toBe(true)
})
