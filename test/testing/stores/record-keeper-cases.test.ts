import { setImmediate as turn } from 'node:timers/promises'
import { memoryStore, type RecordView, type Store } from 'express-service-auth'
import { recordKeeperCases } from 'express-service-auth/testing'
import { describe, expect, it } from 'vitest'
import { brokenRules } from '../../support/stores/store-cases.js'

/** The memory store, but for what is told. */
const but = (change: (good: Store) => Partial<Store>): Store => {
  const good = memoryStore()
  return { ...good, ...change(good) }
}

const shownAs = (change: (view: RecordView) => Partial<RecordView>): Store =>
  but(({ inspect }) => ({
    async inspect(...args) {
      const view = await inspect(...args)
      return view && { ...view, ...change(view) }
    },
  }))

describe('recordKeeperCases', () => {
  it('find nothing wrong with the memory store', async () => {
    const store = memoryStore()
    expect(await brokenRules(recordKeeperCases(() => store))).toEqual([])
    store.close()
  })

  it.each<[string, Store]>([
    ['resolves nothing', but(() => ({ resolve: async () => false }))],
    [
      'says yes to every resolution',
      but(({ resolve }) => ({
        resolve: async (...args) => {
          await resolve(...args)
          return true
        },
      })),
    ],
    [
      'looks at no fence',
      but(({ inspect, resolve }) => ({
        resolve: async (record, _, as) => {
          const view = await inspect(record)
          return resolve(record, view?.fence ?? 0, as)
        },
      })),
    ],
    [
      'leaves the record to its run',
      but(({ resolve, settle }) => {
        const keys = new Set<string>()
        return {
          resolve: async (record, fence, as) => {
            const isDone = await resolve(record, fence, as)
            if (isDone) keys.add(record)
            return isDone
          },
          settle: async (run, ending) => (await settle(run, ending)) || keys.has(run.recordId),
        }
      }),
    ],
    [
      'frees a key whatever it is told',
      but(({ resolve }) => ({
        resolve: (record, fence) => resolve(record, fence, { type: 'freed' }),
      })),
    ],
    [
      'asks nobody whether a result can be read',
      but(({ inspect }) => ({ inspect: (record) => inspect(record) })),
    ],
    [
      'forgets nothing',
      but(({ resolve }) => ({
        resolve: async (record, fence, as) => as.type !== 'forgotten' && resolve(record, fence, as),
      })),
    ],
    [
      'forgets what has not ended',
      but(({ resolve }) => ({
        resolve: async (record, fence, as) =>
          (await resolve(record, fence, as)) ||
          (as.type === 'forgotten' && resolve(record, fence, { type: 'freed' })),
      })),
    ],
    ['decides in two steps', twoSteps()],
    [
      'takes any resolution',
      but(({ resolve }) => ({
        resolve: async (...args) => resolve(...args).catch(() => false),
      })),
    ],
    ['shows each record as abandoned', shownAs(() => ({ state: 'abandoned' }))],
    ['shows no lease', shownAs(() => ({ leaseLeftMs: 1e9 }))],
    ['shows no time of its begin', shownAs(() => ({ begunAt: 1 }))],
    ['forgets early what an operator has said', shownAs(() => ({ expiresInMs: 1000 }))],
  ])('turn down a store that %s', async (_, store) => {
    expect(await brokenRules(recordKeeperCases(() => store))).not.toEqual([])
    store.close()
  })
})

/** Looks at the record, and replaces it later whatever has become of it. */
function twoSteps(): Store {
  return but(({ inspect, resolve }) => ({
    async resolve(record, fence, as) {
      const view = await inspect(record)
      await turn()
      await resolve(record, fence, as)
      return view?.state === 'abandoned'
    },
  }))
}
