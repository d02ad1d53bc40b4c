import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createRefetchBudget } from '../../../src/verification/key-set/remote-key-set.js'

it('grants two fetches in any thirty seconds, a sliding window', () => {
  const budget = createRefetchBudget(() => {})
  expect(budget.take(0)).toBe(true)
  expect(budget.take(20_000)).toBe(true)
  expect(budget.take(29_999)).toBe(false)
  expect(budget.take(30_000)).toBe(true)
  expect(budget.take(49_999)).toBe(false)
  expect(budget.take(50_000)).toBe(true)
})

it('is not used up by what it refuses', () => {
  const budget = createRefetchBudget(() => {})
  budget.take(0)
  budget.take(0)
  for (let moment = 0; moment < 30_000; moment += 10) expect(budget.take(moment)).toBe(false)
  expect(budget.take(30_000)).toBe(true)
})

it('tells of its end once, until it has allowed another fetch', () => {
  let told = 0
  const budget = createRefetchBudget(() => told++)
  for (const moment of [0, 0]) budget.take(moment)
  expect(told).toBe(0)
  for (const moment of [1, 2, 29_999]) budget.take(moment)
  expect(told).toBe(1)
  for (const moment of [30_000, 30_000, 30_000, 30_001]) budget.take(moment)
  expect(told).toBe(2)
})

it('is not locked by a clock that was set back', () => {
  const budget = createRefetchBudget(() => {})
  budget.take(1_000_000)
  budget.take(1_000_000)
  expect(budget.take(5)).toBe(true)
})

it('never grants a third in thirty seconds, and never refuses where there is room', () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 60 })
  fc.assert(
    fc.property(gaps, (steps) => {
      const budget = createRefetchBudget(() => {})
      const granted: number[] = []
      let now = 0
      for (const step of steps) {
        now += step
        const inWindow = granted.filter((moment) => now - moment < 30_000).length
        expect(budget.take(now)).toBe(inWindow < 2)
        if (inWindow < 2) granted.push(now)
      }
    }),
  )
})
