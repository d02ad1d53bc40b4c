import assert from 'node:assert/strict'
import type { DeniedLists, DenylistHealth, LiveDenylist } from 'express-service-auth'
import { redisDenylist } from 'express-service-auth/redis'
import { type DenylistUnderTest, liveDenylistCases } from 'express-service-auth/testing'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis/redis.js'
import { type Denied, ManualDenylist } from '../../support/stores/manual-denylist.js'
import { brokenRules, testCases } from '../../support/stores/store-cases.js'

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.url, { lazyConnect: true })
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

function onRedis(): DenylistUnderTest {
  const denylist = redisDenylist(client)
  // The machine is shared: what is tested here is not how long Redis may take.
  const patiently = { timeoutMs: 10_000 }
  return {
    denylist,
    deny: (entry) => denylist.deny(entry, patiently),
    allow: (target) => denylist.allow(target, patiently),
  }
}

describe.concurrent('the denylist on Redis', () => {
  testCases(liveDenylistCases(onRedis))
})

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

/** What it does, and how many rules that breaks. */
const BROKEN: Record<string, [(list: ManualDenylist) => object, number]> = {
  'answers with a promise': [changing(async (lists) => lists), 3],
  'has lists for sets': [changing((lists) => ({ ...lists, keys: [...lists.keys] })), 3],
  'is never known': [(list) => ({ lists: () => void list }), 3],
  'takes keys for callers': [changing((lists) => ({ ...lists, keys: lists.callers })), 2],
  'folds the case of names': [
    changing((lists) => ({ ...lists, callers: folded(lists.callers) })),
    1,
  ],
  'mixes issuers up': [ofAllIssuers, 1],
  'has cut-offs in ms': [
    changing(({ issuedBefore, ...lists }) => ({
      ...lists,
      ...(issuedBefore !== undefined && { issuedBefore: issuedBefore * 1000 }),
    })),
    1,
  ],
  'is known for ready() alone': [() => ({ ready: () => Promise.reject(new Error('down')) }), 11],
  'has a health of its own': [healthWith({ state: 'ok' }), 2],
  'has a date in its health': [healthWith({ version: new Date() }), 2],
  'throws when it is asked to catch up': [() => ({ catchUp: () => assert.fail('no') }), 1],
  'catches up without a promise': [() => ({ catchUp: () => true }), 1],
  'never catches up': [() => ({ catchUp: () => new Promise(() => {}) }), 1],
  'throws when it is closed': [failingWhenClosed, 1],
}

describe('liveDenylistCases', () => {
  it.concurrent.each(Object.entries(BROKEN))(
    'turn down one that %s',
    async (_, [broken, least]) => {
      const rules = await brokenRules(liveDenylistCases(() => byHand(broken)))
      expect(rules.length).toBeGreaterThanOrEqual(least)
    },
  )

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

  it('must be given a function', () => {
    expect(() => liveDenylistCases({} as never)).toThrow(TypeError)
  })
})
