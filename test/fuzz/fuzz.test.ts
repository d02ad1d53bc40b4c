import { describe, expect, it } from 'vitest'
import { fuzz } from './fuzz.js'

describe('mutated credentials', () => {
  it('never get more than the contract allows', async () => {
    const report = await fuzz({ seed: 1, seconds: 1, leastExecutions: 4000 })
    expect(report.violations).toEqual([])
    expect(report.statuses[401]).toBeGreaterThan(0)
    expect(report.statuses[200]).toBeGreaterThan(0)
  })
})
