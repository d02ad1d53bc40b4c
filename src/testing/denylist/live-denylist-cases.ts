import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { DenylistEntry, DenylistTarget } from '../../verification/denylist/denylist-entry.js'
import type { DeniedLists, LiveDenylist } from '../../verification/denylist/live-denylist.js'
import { casesOf, eventually, type StoreCase, type StoreRules } from '../stores/store-case.js'

/** A live denylist, and the functions that change it. */
export interface DenylistUnderTest {
  /** The denylist under test. */
  readonly denylist: LiveDenylist
  /** Denies; resolves once the entry is written, whether or not it is in force. */
  deny(entry: DenylistEntry): unknown
  /** Ends an entry; resolves once that is written. */
  allow(target: DenylistTarget): unknown
}

/** Returns a separate denylist for each case, which closes it; all of them may share one list. */
export type DenylistOpener = () => DenylistUnderTest | Promise<DenylistUnderTest>

/**
 * The rules of a `LiveDenylist`, as cases for any test runner. Each case denies tokens of its own issuer.
 *
 * @throws TypeError if it is given no function.
 *
 * @example
 * ```ts
 * import { redisDenylist } from 'express-service-auth/redis'
 * import { liveDenylistCases } from 'express-service-auth/testing'
 * import { Redis } from 'ioredis'
 *
 * const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
 * function open() {
 *   const denylist = redisDenylist(redis)
 *   return { denylist, deny: denylist.deny, allow: denylist.allow }
 * }
 * for (const { name, run } of liveDenylistCases(open)) {
 *   await run()
 *   console.log(`ok: ${name}`)
 * }
 * redis.disconnect()
 * ```
 */
export const liveDenylistCases = (open: DenylistOpener): readonly StoreCase[] =>
  casesOf(withClose({ ...LIFE_RULES, ...CHANGE_RULES }), open)

const withClose = (rules: StoreRules<DenylistUnderTest>): StoreRules<DenylistUnderTest> =>
  Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [
      name,
      (subject: DenylistUnderTest) => rule(subject).finally(() => subject.denylist.close()),
    ]),
  )

/** Returns a new issuer, so that no two cases use the same. */
const newIssuer = (): string => `https://${randomUUID()}.example/Core`

const LIFE_RULES: StoreRules<DenylistUnderTest> = {
  'lists() answers at once, before the list is known too': async ({ denylist }) => {
    expectSynchronous(denylist.lists(newIssuer()))
    await Promise.all([denylist.ready(), denylist.ready()])
    expectSynchronous(knownLists(denylist, newIssuer()))
  },

  'catchUp(), if it has that, returns undefined or a promise that settles soon': async ({
    denylist,
  }) => {
    await expectCatchUp(denylist)
    await denylist.ready()
    await expectCatchUp(denylist)
    denylist.close()
    await expectCatchUp(denylist)
  },

  'health() says in JSON how it stands, and counts what is in force': async (subject) => {
    expectHealthy(subject.denylist)
    await subject.denylist.ready()
    await deny(subject, newIssuer(), { kind: 'caller', value: 'billing' })
    await eventually('it is fresh and has an entry', async () => {
      const { state, entries } = expectHealthy(subject.denylist)
      return state === 'fresh' && entries >= 1
    })
  },

  'closed, it throws nothing at a guard, and ready() ends': async ({ denylist }) => {
    await denylist.ready()
    denylist.close()
    denylist.close()
    expectSynchronous(denylist.lists(newIssuer()))
    expectHealthy(denylist)
    await expectSettled(denylist.ready(), 'ready() resolves or rejects')
  },
}

/** `lists()` must be synchronous, because a guard decides on a request with it. */
function expectSynchronous(lists: DeniedLists | undefined): void {
  if (lists === undefined) return
  assert.equal(typeof lists, 'object')
  assert.ok(!('then' in lists), 'lists() answers at once, not with a promise')
  for (const set of [lists.callers, lists.keys, lists.tokenIds]) {
    assert.equal(set.has('x'), false, 'sets of callers, keys and tokenIds')
  }
  assert.equal(lists.issuedBefore, undefined)
}

/** @throws AssertionError if the list is not known. */
function knownLists(denylist: LiveDenylist, issuer: string): DeniedLists {
  const lists = denylist.lists(issuer)
  assert.ok(lists !== undefined, 'the list is known')
  return lists
}

const STATES = ['cold', 'fresh', 'stale', 'expired']
const FAILURES = [undefined, 'timeout', 'network', 'server', 'malformed', 'closed']

function expectHealthy(denylist: LiveDenylist): ReturnType<LiveDenylist['health']> {
  const health = denylist.health()
  assert.deepEqual(JSON.parse(JSON.stringify(health)), health, 'plain JSON')
  assert.ok(STATES.includes(health.state), health.state)
  assert.ok(Number.isInteger(health.entries) && health.entries >= 0, 'entries is a count')
  assert.ok(Number.isInteger(health.version) && health.version >= 0, 'version is a whole number')
  assert.ok((health.ageSeconds ?? 0) >= 0, 'ageSeconds is not negative')
  assert.ok([undefined, true].includes(health.regressed), 'regressed is true or absent')
  assert.ok(FAILURES.includes(health.lastError), 'lastError is of the closed list, or absent')
  return health
}

/** Longer than any wait of a case, shorter than the timeout of test runners. */
const SETTLES_WITHIN_MS = 4000

async function expectSettled(promise: Promise<void>, message: string): Promise<void> {
  const ended = promise.then(
    () => 'ended',
    () => 'ended',
  )
  const waited = delay(SETTLES_WITHIN_MS, 'waits', { ref: false })
  assert.equal(await Promise.race([ended, waited]), 'ended', message)
}

/** A guard waits for its promise, so it must not throw, return anything else or stay pending. */
async function expectCatchUp(denylist: LiveDenylist): Promise<void> {
  const caughtUp = denylist.catchUp?.()
  if (caughtUp === undefined) return
  assert.equal(typeof caughtUp?.then, 'function', 'catchUp() returns undefined or a promise')
  await expectSettled(caughtUp, 'the promise of catchUp() settles')
}

/** What can be denied, with two values of it. A cut-off is one for an issuer. */
const VALUES = {
  caller: ['Billing', 'other'],
  key: ['D-1', 'other'],
  token: ['X-1', 'other'],
  'issued-before': [1_790_000_000],
} as const
type Kind = keyof typeof VALUES

function isDenied(lists: DeniedLists, kind: Kind, value: string | number): boolean {
  if (kind === 'issued-before') return lists.issuedBefore === value
  const sets = { caller: lists.callers, key: lists.keys, token: lists.tokenIds }
  return sets[kind].has(String(value))
}

/** Denies without an end. */
async function deny(
  subject: DenylistUnderTest,
  issuer: string,
  thing: Pick<DenylistEntry, 'kind' | 'value'>,
): Promise<void> {
  const at = Math.floor(Date.now() / 1000)
  await subject.deny({ issuer, ...thing, reason: 'a test', by: 'a test', at, until: null })
}

async function expectDenied(
  { denylist }: DenylistUnderTest,
  issuer: string,
  kind: Kind,
): Promise<void> {
  for (const value of VALUES[kind]) {
    const has = async (): Promise<boolean> => isDenied(knownLists(denylist, issuer), kind, value)
    await eventually(`the ${kind} is denied`, has)
  }
}

/** Nothing that is only similar is denied. */
function expectNothingElse({ denylist }: DenylistUnderTest, issuer: string, kind: Kind): void {
  const [value] = VALUES[kind]
  const lists = knownLists(denylist, issuer)
  for (const other of Object.keys(VALUES) as Kind[]) {
    assert.ok(other === kind || !isDenied(lists, other, value), `as a ${other} too`)
  }
  const name = String(value)
  for (const similar of [name.toLowerCase(), `${name} `, name.slice(1), `${name}\u0301`, '']) {
    assert.ok(!isDenied(lists, kind, similar), JSON.stringify(similar))
  }
  for (const other of [newIssuer(), `${issuer}/`, issuer.toLowerCase()]) {
    assert.ok(!isDenied(knownLists(denylist, other), kind, value), `of ${other}`)
  }
}

const targetOf = (issuer: string, kind: Kind): DenylistTarget =>
  kind === 'issued-before' ? { issuer, kind } : { issuer, kind, value: VALUES[kind][0] }

const CHANGE_RULES: StoreRules<DenylistUnderTest> = {
  ...Object.fromEntries(
    (Object.keys(VALUES) as Kind[]).map((kind) => [
      `a denied ${kind} is so as that alone, to the letter, of its issuer alone, until it is allowed`,
      async (subject) => {
        const issuer = newIssuer()
        await subject.denylist.ready()
        for (const value of VALUES[kind]) await deny(subject, issuer, { kind, value })
        await expectDenied(subject, issuer, kind)
        expectNothingElse(subject, issuer, kind)
        await subject.allow(targetOf(issuer, kind))
        const [first, ...others] = VALUES[kind]
        await eventually(`the ${kind} is allowed again`, async () => {
          const lists = knownLists(subject.denylist, issuer)
          for (const other of others) assert.ok(isDenied(lists, kind, other), 'stays denied')
          return !isDenied(lists, kind, first)
        })
      },
    ]),
  ),

  'what was denied before it was ready is not missed': async (subject) => {
    const issuer = newIssuer()
    for (const value of VALUES.key) await deny(subject, issuer, { kind: 'key', value })
    await subject.denylist.ready()
    await expectDenied(subject, issuer, 'key')
  },
}
