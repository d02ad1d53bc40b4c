import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { DenylistEntry, DenylistTarget } from '../../verification/denylist/denylist-entry.js'
import type { DeniedLists, LiveDenylist } from '../../verification/denylist/live-denylist.js'
import { casesOf, eventually, type StoreCase, type StoreRules } from '../stores/store-case.js'

const STATES = ['cold', 'fresh', 'stale', 'expired']
const FAILURES = [undefined, 'timeout', 'network', 'server', 'malformed', 'closed']
/** Longer than any wait of a case, shorter than the timeout of test runners. */
const SETTLES_WITHIN_MS = 4000

/** `lists()` must be synchronous, because a guard decides on a request with it. */
function expectSynchronous(lists: DeniedLists | undefined): void {
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
  assert.ok((health.ageSeconds ?? 0) >= 0, 'ageSeconds is not negative')
  assert.ok([undefined, true].includes(health.regressed), 'regressed is true or absent')
  assert.ok(FAILURES.includes(health.lastError), 'lastError is of the closed list, or absent')
  return health
}

const LIFE_RULES: StoreRules<DenylistUnderTest> = {
  'lists() answers at once, before the list is known too': async ({ denylist }) => {
    expectSynchronous(denylist.lists(newIssuer()))
    await denylist.ready()
    expectSynchronous(denylist.lists(newIssuer()))
  },

  'nothing is denied of an issuer that the list does not name': async ({ denylist }) => {
    await denylist.ready()
    const { callers, keys, tokenIds, issuedBefore } = knownLists(denylist, newIssuer())
    for (const set of [callers, keys, tokenIds]) assert.equal(set.has('x'), false)
    assert.equal(issuedBefore, undefined)
  },

  'catchUp(), if it has that, returns undefined or a promise that settles soon': async (
    subject,
  ) => {
    const { denylist } = subject
    await expectCatchUp(denylist)
    await denylist.ready()
    await expectCatchUp(denylist)
    denylist.close()
    await expectCatchUp(denylist)
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
    expectSynchronous(denylist.lists(newIssuer()))
    expectHealthy(denylist)
    await expectSettled(denylist.ready(), 'ready() resolves or rejects')
  },
}

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

const KINDS = ['caller', 'key', 'token'] as const
type NamedKind = (typeof KINDS)[number]

const setOf = (lists: DeniedLists, kind: NamedKind): ReadonlySet<string> =>
  ({ caller: lists.callers, key: lists.keys, token: lists.tokenIds })[kind]

const untilDenied = (
  { denylist }: DenylistUnderTest,
  issuer: string,
  [kind, value]: readonly [NamedKind, string],
): Promise<void> =>
  eventually(`the ${kind} is denied`, async () =>
    setOf(knownLists(denylist, issuer), kind).has(value),
  )

const NAMED_RULES: StoreRules<DenylistUnderTest> = Object.fromEntries(
  KINDS.map((kind) => [
    `a ${kind} that is denied is so as that alone, until it is allowed`,
    async (subject) => {
      const issuer = newIssuer()
      await subject.denylist.ready()
      await denyFor(subject, issuer, { kind, value: 'x-1' })
      await untilDenied(subject, issuer, [kind, 'x-1'])
      const lists = knownLists(subject.denylist, issuer)
      for (const other of KINDS) assert.equal(setOf(lists, other).has('x-1'), other === kind, other)
      assert.equal(lists.issuedBefore, undefined)
      await subject.allow({ issuer, kind, value: 'x-1' })
      await eventually(
        `the ${kind} is allowed again`,
        async () => !setOf(knownLists(subject.denylist, issuer), kind).has('x-1'),
      )
    },
  ]),
)

const CUT_OFF = 1_790_000_000
const NAME = 'Billing'

const CHANGE_RULES: StoreRules<DenylistUnderTest> = {
  ...NAMED_RULES,

  'a cut-off is in force in seconds, until it is allowed': async (subject) => {
    const issuer = newIssuer()
    const cutOff = (): number | undefined => knownLists(subject.denylist, issuer).issuedBefore
    await subject.denylist.ready()
    await denyFor(subject, issuer, { kind: 'issued-before', value: CUT_OFF })
    await eventually('there is a cut-off', async () => cutOff() !== undefined)
    assert.equal(cutOff(), CUT_OFF)
    await subject.allow({ issuer, kind: 'issued-before' })
    await eventually('there is none any more', async () => cutOff() === undefined)
  },

  'what was denied before it was ready is not missed': async (subject) => {
    const issuer = newIssuer()
    await denyFor(subject, issuer, { kind: 'key', value: 'd-1' })
    await subject.denylist.ready()
    await untilDenied(subject, issuer, ['key', 'd-1'])
  },

  'names are told apart to the letter': async (subject) => {
    const issuer = newIssuer()
    await subject.denylist.ready()
    await denyFor(subject, issuer, { kind: 'caller', value: NAME })
    await untilDenied(subject, issuer, ['caller', NAME])
    const { callers } = knownLists(subject.denylist, issuer)
    for (const other of [NAME.toLowerCase(), `${NAME} `, NAME.slice(1), `${NAME}\u0301`, '']) {
      assert.equal(callers.has(other), false, JSON.stringify(other))
    }
  },

  'what is denied of one issuer’s tokens is denied of no other’s': async (subject) => {
    const issuer = newIssuer()
    await subject.denylist.ready()
    await denyFor(subject, issuer, { kind: 'token', value: 'x-1' })
    await denyFor(subject, issuer, { kind: 'issued-before', value: CUT_OFF })
    await untilDenied(subject, issuer, ['token', 'x-1'])
    for (const other of [newIssuer(), `${issuer}/`, issuer.toLowerCase()]) {
      const { tokenIds, issuedBefore } = knownLists(subject.denylist, other)
      assert.equal(tokenIds.has('x-1'), false, 'its token')
      assert.equal(issuedBefore, undefined, 'its cut-off')
    }
  },

  'to allow one entry leaves the others in force': async (subject) => {
    const issuer = newIssuer()
    await subject.denylist.ready()
    for (const value of ['one', 'other']) await denyFor(subject, issuer, { kind: 'token', value })
    await untilDenied(subject, issuer, ['token', 'one'])
    await untilDenied(subject, issuer, ['token', 'other'])
    await subject.allow({ issuer, kind: 'token', value: 'one' })
    await eventually('one is allowed', async () => {
      const { tokenIds } = knownLists(subject.denylist, issuer)
      assert.ok(tokenIds.has('other'), 'the other one stays denied')
      return !tokenIds.has('one')
    })
  },
}

/** A live denylist, and the functions that change it. */
export interface DenylistUnderTest {
  /** The denylist under test. */
  readonly denylist: LiveDenylist
  /** Denies; resolves once the entry is written, whether or not it is in force. */
  deny(entry: DenylistEntry): unknown
  /** Ends an entry; resolves once that is written. */
  allow(target: DenylistTarget): unknown
}

/** Returns a new issuer, so that no two cases use the same. */
const newIssuer = (): string => `https://${randomUUID()}.example/Core`

/** @throws AssertionError if the list is not known. */
function knownLists(denylist: LiveDenylist, issuer: string): DeniedLists {
  const lists = denylist.lists(issuer)
  assert.ok(lists !== undefined, 'the list is known')
  return lists
}

/** Denies without an end. */
async function denyFor(
  subject: DenylistUnderTest,
  issuer: string,
  thing: Pick<DenylistEntry, 'kind' | 'value'>,
): Promise<void> {
  const at = Math.floor(Date.now() / 1000)
  await subject.deny({ issuer, ...thing, reason: 'a test', by: 'a test', at, until: null })
}
