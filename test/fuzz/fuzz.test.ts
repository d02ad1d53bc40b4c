import { describe, expect, it } from 'vitest'
import { fuzz } from './fuzz.js'

describe('mutated credentials', () => {
  it.each([1, 2])('never get more than the contract allows (seed %i)', async (seed) => {
    const report = await fuzz({ seed, seconds: 2, leastExecutions: 4000 })
    expect(report.violations).toEqual([])
    expect(report.statuses[401]).toBeGreaterThan(0)
    expect(report.statuses[200]).toBeGreaterThan(0)
  })
})
