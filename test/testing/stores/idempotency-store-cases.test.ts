import { setImmediate as turn } from 'node:timers/promises'
import { type Ending, type IdempotencyStore, memoryStore, type Store } from 'express-service-auth'
import { idempotencyStoreCases } from 'express-service-auth/testing'
import { describe, expect, it } from 'vitest'
import { brokenRules } from '../../support/stores/store-cases.js'

/** The memory store, but for what is told. */
const but = (change: (good: Store) => Partial<IdempotencyStore>): IdempotencyStore => {
  const good = memoryStore()
  return { ...good, ...change(good) }
}

describe('idempotencyStoreCases', () => {
  it('find nothing wrong with the memory store', async () => {
    const store = memoryStore()
    expect(await brokenRules(idempotencyStoreCases(() => store))).toEqual([])
    store.close()
  })

  it.each<[string, IdempotencyStore]>([
    [
      'gives every retry the key',
      but(() => ({ reserve: async () => ({ outcome: 'reserved', fence: 1 }) })),
    ],
    [
      'gives fences that do not grow',
      but(({ reserve }) => ({
        async reserve(request) {
          const found = await reserve(request)
          return found.outcome === 'reserved' ? { ...found, fence: 1 } : found
        },
      })),
    ],
    [
      'reads its own lost reply as another run',
      but(({ reserve }) => ({
        reserve: (request) => reserve({ ...request, owner: crypto.randomUUID() }),
      })),
    ],
    [
      'reruns what was abandoned unasked',
      but(({ reserve }) => ({
        reserve: (request) => reserve({ ...request, rerunAbandoned: true }),
      })),
    ],
    [
      'compares no fingerprints',
      but(({ reserve }) => ({ reserve: (request) => reserve({ ...request, fingerprint: '' }) })),
    ],
    [
      'keeps results as text',
      but(({ settle }) => ({
        settle: (run, ending) => settle(run, ending.type === 'finished' ? asText(ending) : ending),
      })),
    ],
    [
      'says yes to every settle',
      but(({ settle }) => ({
        settle: async (...args) => {
          await settle(...args)
          return true
        },
      })),
    ],
    ['renews for anybody', but(() => ({ renew: async () => true }))],
    [
      'frees a key whatever it is told',
      but(({ settle }) => ({ settle: (run) => settle(run, { type: 'released' }) })),
    ],
    [
      'never ends a lease',
      but(({ reserve }) => ({ reserve: (r) => reserve({ ...r, leaseMs: 1e9 }) })),
    ],
    [
      'forgets a result that is not stored',
      but(({ settle }) => ({
        settle: (run, ending) =>
          settle(run, ending.type === 'not_stored' ? { type: 'released' } : ending),
      })),
    ],
    ['decides in two steps', twoSteps()],
  ])(
    'turn down a store that %s',
    async (_, store) => {
      expect(await brokenRules(idempotencyStoreCases(() => store))).not.toEqual([])
    },
    60_000,
  )
})

function asText(ending: Ending & { type: 'finished' }): Ending {
  return { ...ending, result: Buffer.from(Buffer.from(ending.result).toString('utf8')) }
}

/** Looks at the key, and takes it later whatever has become of it. */
function twoSteps(): IdempotencyStore {
  const seen = new Set<string>()
  const good = memoryStore()
  return {
    ...good,
    async reserve(request) {
      if (seen.has(request.recordId)) return good.reserve(request)
      await turn()
      seen.add(request.recordId)
      return { outcome: 'reserved', fence: 1 }
    },
  }
}
