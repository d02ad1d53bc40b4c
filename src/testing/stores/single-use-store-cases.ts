import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { SingleUseStore } from '../../idempotency/single-use.js'
import { casesOf, type StoreCase, type StoreOpener, type StoreRules } from './store-case.js'

const RACERS = 200
const TTL_MS = 60_000
const SHORT_TTL_MS = 300

const RULES: StoreRules<SingleUseStore> = {
  'the first use of an id is recorded, and every later one is told': async (store) => {
    const id = randomUUID()
    assert.equal(await store.consume(id, TTL_MS), true)
    assert.equal(await store.consume(id, TTL_MS), false)
    assert.equal(await store.consume(id, TTL_MS), false)
  },

  'ids are told apart to the letter': async (store) => {
    const id = randomUUID()
    for (const variant of [id, id.toUpperCase(), `${id} `, id.slice(1)]) {
      assert.equal(await store.consume(variant, TTL_MS), true, variant)
    }
  },

  'of 200 uses at once one is the first': async (store) => {
    const id = randomUUID()
    const uses = Array.from({ length: RACERS }, () => store.consume(id, TTL_MS))
    const first = (await Promise.all(uses)).filter((isFirst) => isFirst)
    assert.equal(first.length, 1)
  },

  'a second use does not shorten the time of the first': async (store) => {
    const id = randomUUID()
    assert.equal(await store.consume(id, TTL_MS), true)
    assert.equal(await store.consume(id, 1), false)
    await delay(SHORT_TTL_MS)
    assert.equal(await store.consume(id, TTL_MS), false)
  },

  'an id is remembered for all of its time': async (store) => {
    const id = randomUUID()
    const askedAt = performance.now()
    assert.equal(await store.consume(id, SHORT_TTL_MS), true)
    for (;;) {
      const isFirst = await store.consume(id, SHORT_TTL_MS)
      if (performance.now() - askedAt >= SHORT_TTL_MS) break
      assert.equal(isFirst, false)
      await delay(SHORT_TTL_MS / 10)
    }
  },
}

/**
 * The rules of a `SingleUseStore`, as cases for any test runner.
 *
 * @throws TypeError if it is given no function.
 *
 * @example
 * ```ts
 * import { memoryStore } from 'express-service-auth'
 * import { singleUseStoreCases } from 'express-service-auth/testing'
 *
 * for (const { name, run } of singleUseStoreCases(() => memoryStore())) {
 *   await run()
 *   console.log(`ok: ${name}`)
 * }
 * ```
 */
export const singleUseStoreCases = (open: StoreOpener<SingleUseStore>): readonly StoreCase[] =>
  casesOf(RULES, open)
