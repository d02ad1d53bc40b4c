import assert from 'node:assert/strict'
import type { DeniedLists } from '../../verification/denylist/live-denylist.js'
import { eventually, type StoreRules } from '../stores/store-case.js'
import { type DenylistUnderTest, denyFor, knownLists, newIssuer } from './denylist-scenario.js'

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

export const CHANGE_RULES: StoreRules<DenylistUnderTest> = {
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
