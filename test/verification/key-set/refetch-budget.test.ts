import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createRefetchBudget } from '../../../src/verification/key-set/remote-key-set.js'

it('is not locked by a clock that was set back', () => {
  const budget = createRefetchBudget(() => {})
  budget.take(1_000_000)
  budget.take(1_000_000)
  expect(budget.take(5)).toBe(true)
})

it('never grants a third in ten seconds, and never refuses where there is room', () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 7000 }), { maxLength: 60 })
  fc.assert(
    fc.property(gaps, (steps) => {
      const budget = createRefetchBudget(() => {})
      const granted: number[] = []
      let now = 0
      for (const step of steps) {
        now += step
        const inWindow = granted.filter((moment) => now - moment < 10_000).length
        expect(budget.take(now)).toBe(inWindow < 2)
        if (inWindow < 2) granted.push(now)
      }
    }),
  )
})
