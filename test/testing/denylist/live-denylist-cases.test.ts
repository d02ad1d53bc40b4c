import assert from 'node:assert/strict'
import type { DeniedLists, DenylistHealth, LiveDenylist } from 'express-service-auth'
import { type DenylistUnderTest, liveDenylistCases } from 'express-service-auth/testing'
import { describe, expect, it } from 'vitest'
import { type Denied, ManualDenylist } from '../../support/stores/manual-denylist.js'
import { brokenRules, testCases } from '../../support/stores/store-cases.js'

// On Redis: stores/redis/clients/libraries.test.ts.

const SETS = { caller: 'callers', key: 'keys', token: 'tokenIds' } as const

/** By hand; `broken` is what its `LiveDenylist` does otherwise. */
function byHand(broken: (list: ManualDenylist) => object = () => ({})): DenylistUnderTest {
  const list = new ManualDenylist()
  const right: LiveDenylist = {
    lists: (issuer) => list.lists(issuer),
    ready: () => list.ready(),
    health: () => list.health(),
    close: () => list.close(),
  }
  const setOf = (kind: keyof typeof SETS): Denied => SETS[kind]
  return {
    denylist: { ...right, ...broken(list) },
    deny({ issuer, kind, value }) {
      if (kind === 'issued-before') list.cutOff(Number(value), issuer)
      else list.deny(setOf(kind), String(value), issuer)
    },
    allow(target) {
      const { issuer, kind } = target
      if (kind === 'issued-before') list.cutOff(undefined, issuer)
      else list.allow(setOf(kind), target.value, issuer)
    },
  }
}

describe('one that is filled by hand', () => {
  testCases(liveDenylistCases(byHand))
})

/** What `lists` answers, changed. */
const changing =
  (change: (lists: DeniedLists, issuer: string) => unknown) =>
  (list: ManualDenylist): object => ({
    lists: (issuer: string) => {
      const lists = list.lists(issuer)
      return lists && change(lists, issuer)
    },
  })

const folded = (set: ReadonlySet<string>) => ({
  has: (name: string) => [...set].some((value) => value.toLowerCase() === name.toLowerCase()),
})

const ofAllIssuers = (list: ManualDenylist): object => {
  const issuers = new Set<string>()
  return {
    lists(issuer: string) {
      issuers.add(issuer)
      const all = [...issuers].flatMap((each) => list.lists(each) ?? [])
      const cutOffs = all.flatMap(({ issuedBefore }) => issuedBefore ?? [])
      return {
        keys: new Set(all.flatMap(({ keys }) => [...keys])),
        callers: new Set(all.flatMap(({ callers }) => [...callers])),
        tokenIds: new Set(all.flatMap(({ tokenIds }) => [...tokenIds])),
        ...(cutOffs.length > 0 && { issuedBefore: cutOffs[0] }),
      }
    },
  }
}

const healthWith =
  (change: Partial<Record<keyof DenylistHealth, unknown>>) =>
  (list: ManualDenylist): object => ({ health: () => ({ ...list.health(), ...change }) })

function failingWhenClosed(list: ManualDenylist): object {
  return {
    lists(issuer: string) {
      if (list.closed > 0) throw new Error('closed')
      return list.lists(issuer)
    },
  }
}

/** What it does otherwise. */
const BROKEN: Record<string, (list: ManualDenylist) => object> = {
  'answers with a promise': changing(async (lists) => lists),
  'has lists for sets': changing((lists) => ({ ...lists, keys: [...lists.keys] })),
  'is never known': (list) => ({ lists: () => void list }),
  'takes keys for callers': changing((lists) => ({ ...lists, keys: lists.callers })),
  'folds the case of names': changing((lists) => ({ ...lists, callers: folded(lists.callers) })),
  'mixes issuers up': ofAllIssuers,
  'has cut-offs in ms': changing(({ issuedBefore = Number.NaN, ...lists }) => ({
    ...lists,
    ...(issuedBefore > 0 && { issuedBefore: issuedBefore * 1000 }),
  })),
  'is never ready': () => ({ ready: () => Promise.reject(new Error('down')) }),
  'has a health of its own': healthWith({ state: 'ok' }),
  'has a date in its health': healthWith({ version: new Date() }),
  'throws when it is asked to catch up': () => ({ catchUp: () => assert.fail('no') }),
  'catches up without a promise': () => ({ catchUp: () => true }),
  'never catches up': () => ({ catchUp: () => new Promise(() => {}) }),
  'throws when it is closed': failingWhenClosed,
}

describe('liveDenylistCases', () => {
  it.concurrent.each(Object.entries(BROKEN))('reject one that %s', async (_, broken) => {
    expect(await brokenRules(liveDenylistCases(() => byHand(broken)))).not.toEqual([])
  })

  it('have a name each, and close what they open', async () => {
    const opened: DenylistUnderTest[] = []
    let closed = 0
    const cases = liveDenylistCases(() => {
      const subject = byHand(() => ({ close: () => closed++ }))
      opened.push(subject)
      return subject
    })
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    expect(opened).toEqual([])
    expect(await brokenRules(cases)).toEqual([])
    expect(opened).toHaveLength(cases.length)
    expect(closed).toBeGreaterThanOrEqual(cases.length)
  })
})
