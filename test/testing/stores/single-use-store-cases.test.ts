import { setImmediate as turn } from 'node:timers/promises'
import { memoryStore, type SingleUseStore } from 'express-service-auth'
import { singleUseStoreCases } from 'express-service-auth/testing'
import { describe, expect, it } from 'vitest'
import { brokenRules } from '../../support/stores/store-cases.js'

/** Looks and records in two steps. */
function racyStore(): SingleUseStore {
  const known = new Set<string>()
  return {
    async consume(id) {
      const isFirst = !known.has(id)
      await turn()
      known.add(id)
      return isFirst
    },
  }
}

/** Takes the latest time to live. */
function overwritingStore(): SingleUseStore {
  const known = new Map<string, number>()
  return {
    async consume(id, ttlMs) {
      const isFirst = (known.get(id) ?? 0) <= performance.now()
      known.set(id, performance.now() + ttlMs)
      return isFirst
    },
  }
}

const foldingStore = (): SingleUseStore => {
  const store = memoryStore()
  return { consume: (id, ttlMs) => store.consume(id.toLowerCase(), ttlMs) }
}

describe('singleUseStoreCases', () => {
  it('find nothing wrong with the memory store', async () => {
    const store = memoryStore()
    expect(await brokenRules(singleUseStoreCases(() => store))).toEqual([])
    store.close()
  })

  it.each([
    ['lets everything pass', { consume: async () => true }, 4],
    ['lets nothing pass', { consume: async () => false }, 5],
    ['looks and records in two steps', racyStore(), 1],
    ['takes the latest time to live', overwritingStore(), 1],
    ['folds the case of ids', foldingStore(), 1],
    ['fails', { consume: () => Promise.reject(new Error('down')) }, 5],
  ])('turn down a store that %s', async (_, store, rules) => {
    expect(await brokenRules(singleUseStoreCases(() => store))).toHaveLength(rules)
  })
})
