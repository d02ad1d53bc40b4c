import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { DeniedLists, LiveDenylist } from '../../verification/denylist/live-denylist.js'
import { casesOf, eventually, type StoreCase, type StoreRules } from '../stores/store-case.js'
import { CHANGE_RULES } from './change-rules.js'
import { type DenylistUnderTest, denyFor, knownLists, newIssuer } from './denylist-scenario.js'

const STATES = ['cold', 'fresh', 'stale', 'expired']
const FAILURES = [undefined, 'timeout', 'network', 'server', 'malformed', 'closed']
/** Longer than any wait of a case, shorter than the timeout of test runners. */
const SETTLES_WITHIN_MS = 4000

/** `lists()` must be synchronous, because a guard decides on a request with it. */
function expectAtOnce(lists: DeniedLists | undefined): void {
  if (lists === undefined) return
  assert.equal(typeof lists, 'object')
  assert.ok(!('then' in lists), 'lists() answers at once, not with a promise')
  for (const set of [lists.callers, lists.keys, lists.tokenIds]) {
    assert.equal(typeof set.has('x'), 'boolean', 'sets of callers, keys and tokenIds')
  }
}

function expectHealthy(denylist: LiveDenylist): ReturnType<LiveDenylist['health']> {
  const health = denylist.health()
  assert.deepEqual(JSON.parse(JSON.stringify(health)), health, 'plain JSON')
  assert.ok(STATES.includes(health.state), health.state)
  assert.ok(Number.isInteger(health.entries) && health.entries >= 0, 'entries is a count')
  assert.ok(Number.isInteger(health.version) && health.version >= 0, 'version is a whole number')
  assert.ok((health.ageSeconds ?? 0) >= 0, 'ageSeconds is no negative number')
  assert.ok([undefined, true].includes(health.regressed), 'regressed is true or absent')
  assert.ok(FAILURES.includes(health.lastError), 'lastError is of the closed list, or absent')
  return health
}

const LIFE_RULES: StoreRules<DenylistUnderTest> = {
  'lists() answers at once, before the list is known too': async ({ denylist }) => {
    expectAtOnce(denylist.lists(newIssuer()))
    await denylist.ready()
    expectAtOnce(denylist.lists(newIssuer()))
  },

  'nothing is denied of an issuer that the list does not name': async ({ denylist }) => {
    await denylist.ready()
    const { callers, keys, tokenIds, issuedBefore } = knownLists(denylist, newIssuer())
    for (const set of [callers, keys, tokenIds]) assert.equal(set.has('x'), false)
    assert.equal(issuedBefore, undefined)
  },

  'ready() may be waited for by many, and again': async ({ denylist }) => {
    await Promise.all([denylist.ready(), denylist.ready(), denylist.ready()])
    await denylist.ready()
    assert.ok(denylist.lists(newIssuer()) !== undefined, 'the list is known once it is ready')
  },

  'health() says in JSON how it stands, and counts what is in force': async (subject) => {
    expectHealthy(subject.denylist)
    await subject.denylist.ready()
    await denyFor(subject, newIssuer(), { kind: 'caller', value: 'billing' })
    await eventually('it is fresh and has an entry', async () => {
      const { state, entries } = expectHealthy(subject.denylist)
      return state === 'fresh' && entries >= 1
    })
  },

  'closed, it throws nothing at a guard, and ready() ends': async ({ denylist }) => {
    await denylist.ready()
    denylist.close()
    denylist.close()
    expectAtOnce(denylist.lists(newIssuer()))
    expectHealthy(denylist)
    const ended = denylist.ready().then(
      () => 'ended',
      () => 'ended',
    )
    const waited = delay(SETTLES_WITHIN_MS, 'waits', { ref: false })
    assert.equal(await Promise.race([ended, waited]), 'ended', 'ready() resolves or rejects')
  },
}

/** Returns a separate denylist for each case, which closes it; all of them may share one list. */
export type DenylistOpener = () => DenylistUnderTest | Promise<DenylistUnderTest>

/**
 * The rules of a `LiveDenylist`, as cases for any test runner. Each case denies tokens of its own
 * issuer.
 *
 * @throws TypeError if it is given no function.
 */
export const liveDenylistCases = (open: DenylistOpener): readonly StoreCase[] =>
  casesOf(closing({ ...LIFE_RULES, ...CHANGE_RULES }), open)

const closing = (rules: StoreRules<DenylistUnderTest>): StoreRules<DenylistUnderTest> =>
  Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [
      name,
      (subject: DenylistUnderTest) => rule(subject).finally(() => subject.denylist.close()),
    ]),
  )
