import { expect, test } from 'vitest'
import { lockLiteral } from '../../../src/stores/postgres/sql/literals.js'
import { createLedger } from '../../support/coupled-receiver.js'
import { newKey } from '../../support/order-calls.js'
import { sharedPostgres } from '../../support/postgres-database.js'
import { until } from '../../support/until.js'
import { type Mutation, openMutated } from './mutated-store.js'

// What makes a difference once in thousands of requests makes one each time where the server is told to
// wait in the right place. Each wrong order of statements stands beside the right one, which waits too.

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const PAUSE_MS = 400
/** Resolves when a store has come to its pause. */
const paused = (): Promise<void> =>
  until('a statement that waits', async () => {
    const sleeping = "select 1 from pg_stat_activity where wait_event = 'PgSleep'"
    return (await ledger.query(sleeping)).length > 0
  })

const TRY = 'pg_catalog.pg_try_advisory_xact_lock'
const PAUSE = `pg_catalog.pg_sleep(${PAUSE_MS / 1000})::text is null`
const XACT = 'pg_catalog.pg_current_xact_id()::text'

interface Locks {
  readonly a: string
  readonly b: string
}

/** The opening with another statement for its locks. */
const withLocks =
  (text: (locks: Locks) => string): Mutation =>
  (real) => ({
    open(ids, opening) {
      const [guards, , look] = real.open(ids, opening)
      const a = lockLiteral(ids.keyLock)
      const b = lockLiteral(ids.requestLock)
      return [guards, { text: text({ a, b }), values: [] }, look]
    },
  })

test('an equal request to another instance is not told that the key is another’s: B before A', async () => {
  const bFirst = withLocks(
    ({ a, b }) =>
      `select case when not ${TRY}(${b}) then 'running' when ${PAUSE} then null ` +
      `when not ${TRY}(${a}) then 'reused' else ${XACT} end as lock`,
  )
  const aFirst = withLocks(
    ({ a, b }) =>
      `select case when not ${TRY}(${a}) then case when ${TRY}(${b}) then 'reused' else 'running' end ` +
      `when ${PAUSE} then null when not ${TRY}(${b}) then 'running' else ${XACT} end as lock`,
  )
  const meet = async (mutation: Mutation): Promise<string[]> => {
    const [one, other] = [openMutated(ledger.url, mutation), openMutated(ledger.url, mutation)]
    const key = newKey()
    // Its connections are there when it counts.
    await other.write(newKey(), 'equal')
    const first = one.write(key, 'equal')
    await paused()
    const second = await other.write(key, 'equal')
    return [(await first).outcome, second.outcome]
  }
  expect(await meet(bFirst)).toEqual(['committed', 'running'])
  expect(await meet(aFirst)).toEqual(['committed', 'mismatch'])
})

test('no handler runs in vain: the look-up begins after the locks are taken', async () => {
  const locksOf = ({ a, b }: Locks): string =>
    `case when ${PAUSE} then null when not ${TRY}(${b}) then 'running' ` +
    `when not ${TRY}(${a}) then 'reused' else ${XACT} end`
  const apart = withLocks((locks) => `select ${locksOf(locks)} as lock`)
  const joined: Mutation = (real) => ({
    open(ids, opening) {
      const [guards, , look] = real.open(ids, opening)
      const a = lockLiteral(ids.keyLock)
      const b = lockLiteral(ids.requestLock)
      const found = look.text.replace(/^select /, '')
      const text = `with locked as materialized (select ${locksOf({ a, b })} as lock) select lock, found.* from locked left join lateral (select ${found}) as found on true`
      return [guards, { text, values: [] }, { text: 'select 1', values: [] }]
    },
    readOpened([, rows]) {
      const found = rows?.[0]?.['same'] === null ? [] : (rows ?? [])
      return real.readOpened([[], rows ?? [], found])
    },
  })
  const overtake = async (mutation: Mutation) => {
    const slow = openMutated(ledger.url, mutation)
    const quick = openMutated(ledger.url, () => ({}))
    await quick.write(newKey(), 'equal')
    const key = newKey()
    const first = slow.write(key, 'equal')
    await paused()
    expect(await quick.write(key, 'equal')).toMatchObject({ outcome: 'committed' })
    const outcome = await first
    expect(await ledger.effects(key)).toBe(1)
    return { outcome: outcome.outcome, inVain: slow.handled }
  }
  expect(await overtake(apart)).toEqual({ outcome: 'finished', inVain: 0 })
  expect(await overtake(joined)).toEqual({ outcome: 'overtaken', inVain: 1 })
})

test('a stale snapshot costs a run in vain and never a second effect: a plain insert', async () => {
  /** The snapshot of the whole transaction is made here, before the locks. */
  const slow: Mutation = (real) => ({
    open(ids, opening) {
      const [guards, locks, look] = real.open(ids, opening)
      const text = `${guards.text}, pg_catalog.pg_sleep(${PAUSE_MS / 1000})::text as paused`
      return [{ ...guards, text }, locks, look]
    },
  })
  const yielding: Mutation = (real) => ({
    ...slow(real),
    keep(ids, keeping) {
      const { text, values } = real.keep(ids, keeping)
      return { text: `${text} on conflict do nothing`, values }
    },
  })
  const overtake = async (mutation: Mutation) => {
    const stale = openMutated(ledger.url, mutation, 'repeatable read')
    const quick = openMutated(ledger.url, () => ({}))
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
