import { memoryStore } from 'express-service-auth'
import {
  idempotencyStoreCases,
  type StoreCase,
  singleUseStoreCases,
} from 'express-service-auth/testing'
import { describe, expect, it, onTestFinished } from 'vitest'

const names = (cases: readonly StoreCase[]): string[] => cases.map(({ name }) => name)

describe('the cases', () => {
  it('have a name each, for runners that want them unique', () => {
    for (const all of [singleUseStoreCases(memoryStore), idempotencyStoreCases(memoryStore)]) {
      expect(new Set(names(all)).size).toBe(all.length)
    }
  })

  it('open the store when they run, not before', async () => {
    let opened = 0
    const store = memoryStore()
    onTestFinished(() => store.close())
    const [first] = singleUseStoreCases(async () => {
      opened++
      return store
    })
    expect(opened).toBe(0)
    await first?.run()
    expect(opened).toBe(1)
  })
})
