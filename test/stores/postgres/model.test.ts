import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { MUTANTS, type Mutant, THE_CODE } from './model-mutants.js'
import { stories } from './model-story.js'
import { letTimePass, stopTime } from './model-time.js'
import { tell } from './model-world.js'

const RUNS = 320
const MUTANT_RUNS = 2000

beforeEach(stopTime)
afterEach(letTimePass)

const keepsEveryRule = (mutant: Mutant) =>
  fc.asyncProperty(stories, async (story) => {
    vi.clearAllTimers()
    expect(await tell(story, mutant)).toEqual([])
  })

it('the code keeps every rule, whatever comes between its steps', async () => {
  const numRuns = Number(process.env['MODEL_RUNS'] ?? RUNS)
  await fc.assert(keepsEveryRule(THE_CODE), { numRuns })
})

it.each(Object.entries(MUTANTS))('%s is found out', async (_name, { mutant, breaks, seed = 1 }) => {
  const options = { numRuns: MUTANT_RUNS, seed, endOnFailure: true }
  const { failed, errorInstance } = await fc.check(keepsEveryRule(mutant), options)
  expect(failed).toBe(true)
  const { actual } = errorInstance as { readonly actual: readonly string[] }
  expect(actual.join('\n')).toMatch(breaks)
})
