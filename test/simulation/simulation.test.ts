import { describe, expect, it } from 'vitest'
import { loadPackage } from './load.js'
import { MUTANTS } from './mutants.js'
import { search, tell } from './search.js'
import { drawStory } from './story.js'
import { textOf } from './time-line.js'

const STORIES = 1200

it('every story keeps every promise', async () => {
  const found = await search(await loadPackage(), { from: 1, count: STORIES })
  expect(found && textOf(found.told)).toBeUndefined()
}, 600_000)

it.each([
  'a running key is taken',
  'a result lives for its lease',
  'compensation without owner',
  'a token is remembered for a second',
  'a replay is not marked',
])('notices that %s', async (name) => {
  const esa = await loadPackage(MUTANTS[name])
  expect(await search(esa, { from: 1, count: 200 })).toBeDefined()
})

it('refuses a mutant whose snippet is not in the file', async () => {
  const mutation = { file: 'idempotency/leased/lease.ts', from: 'no such line', to: '' }
  await expect(loadPackage([mutation])).rejects.toThrow('has the snippet 0 times: no such line')
})

describe('a story', () => {
  it('is the same each time that it is told', async () => {
    const esa = await loadPackage()
    for (const seed of [3, 91, 544]) {
      const first = await tell(drawStory(seed), esa)
      const second = await tell(drawStory(seed), await loadPackage())
      expect(first.world.stage.history.lines.length).toBeGreaterThan(5)
      expect(second.world.stage.history.lines).toEqual(first.world.stage.history.lines)
      expect(second.world.stage.simulation.events).toBe(first.world.stage.simulation.events)
    }
  })
})
