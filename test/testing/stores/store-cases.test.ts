import { setImmediate as turn } from 'node:timers/promises'
import { memoryStore, type RecordView, type Store } from 'express-service-auth'
import {
  idempotencyStoreCases,
  recordKeeperCases,
  type StoreCase,
  singleUseStoreCases,
} from 'express-service-auth/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { brokenRules } from '../../support/stores/store-cases.js'

// That they find nothing wrong with a sound store: stores/memory-store.test.ts.

/** What a store does otherwise than the memory store. */
type Break = (good: Store) => Partial<Store>

function broken(breakIt: Break): Store {
  const good = memoryStore()
  onTestFinished(() => good.close())
  return { ...good, ...breakIt(good) }
}

const SINGLE_USE: Record<string, Break> = {
  'lets everything pass': () => ({ consume: async () => true }),
  'lets nothing pass': () => ({ consume: async () => false }),
  'looks and records in two steps'() {
    const known = new Set<string>()
    return {
      async consume(id) {
        const isFirst = !known.has(id)
        await turn()
        known.add(id)
        return isFirst
      },
    }
  },
  'takes the latest time to live'() {
    const known = new Map<string, number>()
    return {
      async consume(id, ttlMs) {
        const isFirst = (known.get(id) ?? 0) <= performance.now()
        known.set(id, performance.now() + ttlMs)
        return isFirst
      },
    }
  },
  'folds the case of ids': ({ consume }) => ({
    consume: (id, ttlMs) => consume(id.toLowerCase(), ttlMs),
  }),
  fails: () => ({ consume: () => Promise.reject(new Error('down')) }),
}

const IDEMPOTENCY: Record<string, Break> = {
  'gives every retry the key': () => ({ reserve: async () => ({ outcome: 'reserved', fence: 1 }) }),
  'gives fences that do not grow': ({ reserve }) => ({
    async reserve(request) {
      const found = await reserve(request)
      return found.outcome === 'reserved' ? { ...found, fence: 1 } : found
    },
  }),
  'reads its own lost reply as another run': ({ reserve }) => ({
    reserve: (request) => reserve({ ...request, owner: crypto.randomUUID() }),
  }),
  'reruns what was abandoned unasked': ({ reserve }) => ({
    reserve: (request) => reserve({ ...request, rerunAbandoned: true }),
  }),
  'compares no fingerprints': ({ reserve }) => ({
    reserve: (request) => reserve({ ...request, fingerprint: '' }),
  }),
  'keeps results as text': ({ settle }) => ({
    settle(run, ending) {
      if (ending.type !== 'finished') return settle(run, ending)
      return settle(run, { ...ending, result: Buffer.from(Buffer.from(ending.result).toString()) })
    },
  }),
  'says yes to every settle': ({ settle }) => ({
    settle: (run, ending) => settle(run, ending).then(() => true),
  }),
  'renews for anybody': () => ({ renew: async () => true }),
  'frees a key whatever it is told': ({ settle }) => ({
    settle: (run) => settle(run, { type: 'released' }),
  }),
  'never ends a lease': ({ reserve }) => ({
    reserve: (request) => reserve({ ...request, leaseMs: 1e9 }),
  }),
  'forgets a result that is not stored': ({ settle }) => ({
    settle: (run, ending) =>
      settle(run, ending.type === 'not_stored' ? { type: 'released' } : ending),
  }),
  'looks at the key and takes it in two steps'({ reserve }) {
    const seen = new Set<string>()
    return {
      async reserve(request) {
        if (seen.has(request.recordId)) return reserve(request)
        await turn()
        seen.add(request.recordId)
        return { outcome: 'reserved', fence: 1 }
      },
    }
  },
}

const showing =
  (change: Partial<RecordView>): Break =>
  ({ inspect }) => ({
    async inspect(...args) {
      const view = await inspect(...args)
      return view && { ...view, ...change }
    },
  })

const RECORD_KEEPER: Record<string, Break> = {
  'resolves nothing': () => ({ resolve: async () => false }),
  'says yes to every resolution': ({ resolve }) => ({
    resolve: (...args) => resolve(...args).then(() => true),
  }),
  'looks at no fence': ({ inspect, resolve }) => ({
    resolve: async (record, _, as) => resolve(record, (await inspect(record))?.fence ?? 0, as),
  }),
  'leaves the record to its run'({ resolve, settle }) {
    const resolved = new Set<string>()
    return {
      async resolve(record, fence, as) {
        const isDone = await resolve(record, fence, as)
        if (isDone) resolved.add(record)
        return isDone
      },
      settle: async (run, ending) => (await settle(run, ending)) || resolved.has(run.recordId),
    }
  },
  'frees a key whatever it is told': ({ resolve }) => ({
    resolve: (record, fence) => resolve(record, fence, { type: 'freed' }),
  }),
  'asks nobody whether a result can be read': ({ inspect }) => ({
    inspect: (record) => inspect(record),
  }),
  'forgets nothing': ({ resolve }) => ({
    resolve: async (record, fence, as) => as.type !== 'forgotten' && resolve(record, fence, as),
  }),
  'forgets what has not ended': ({ resolve }) => ({
    resolve: async (record, fence, as) =>
      (await resolve(record, fence, as)) ||
      (as.type === 'forgotten' && resolve(record, fence, { type: 'freed' })),
  }),
  'looks at the record and replaces it in two steps': ({ inspect, resolve }) => ({
    async resolve(record, fence, as) {
      const view = await inspect(record)
      await turn()
      await resolve(record, fence, as)
      return view?.state === 'abandoned'
    },
  }),
  'takes any resolution': ({ resolve }) => ({
    resolve: (...args) => resolve(...args).catch(() => false),
  }),
  'shows each record as abandoned': showing({ state: 'abandoned' }),
  'shows no lease': showing({ leaseLeftMs: 1e9 }),
  'shows no time of its begin': showing({ begunAt: 1 }),
  'forgets early what an operator has said': showing({ expiresInMs: 1000 }),
}

type Suite = (open: () => Store | Promise<Store>) => readonly StoreCase[]

describe.each<[string, Suite, Record<string, Break>]>([
  ['singleUseStoreCases', singleUseStoreCases, SINGLE_USE],
  ['idempotencyStoreCases', idempotencyStoreCases, IDEMPOTENCY],
  ['recordKeeperCases', recordKeeperCases, RECORD_KEEPER],
])('%s', (_, casesOf, breaks) => {
  it.each(Object.entries(breaks))(
    'reject a store that %s',
    async (_name, breakIt) => {
      const store = broken(breakIt)
      expect(await brokenRules(casesOf(() => store))).not.toEqual([])
    },
    60_000,
  )

  it('have a name each, for runners that want them unique, and open the store when they run', async () => {
    let opened = 0
    const cases = casesOf(async () => {
      opened++
      return broken(() => ({}))
    })
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    expect(opened).toBe(0)
    await cases[0]?.run()
    expect(opened).toBe(1)
    expect(() => casesOf({} as never)).toThrow(TypeError)
  })
})
