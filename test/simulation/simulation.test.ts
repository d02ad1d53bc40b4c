import { describe, expect, it } from 'vitest'
import { KINDS } from './kinds.js'
import { checkMutants, loadPackage } from './load.js'
import { search, tell } from './search.js'
import { textOf } from './time-line.js'

describe('every promise is kept in', () => {
  it.each([
    [4000, 'leased'],
    [500, 'coupled'],
    [500, 'migration'],
  ] as const)('%i stories (%s)', { timeout: 600_000 }, async (count, kind) => {
    const found = await search(KINDS[kind], await loadPackage(), { from: 1, count })
    expect(found && textOf(found.told)).toBeUndefined()
  })
})

it.each([
  ['leased', 'a running key is taken'],
  ['leased', 'a result lives for its lease'],
  ['leased', 'compensation without owner'],
  ['leased', 'a token is remembered for a second'],
  ['leased', 'a replay is not marked'],
  ['coupled', 'an answer is sent before COMMIT'],
  ['coupled', 'a refusal commits its writes'],
  ['migration', 'a lost call is sent again without a look'],
  ['migration', 'whom the job blames has failed'],
] as const)('notices (%s) that %s', async (kind, name) => {
  const { mutants } = KINDS[kind]
  const esa = await loadPackage(mutants[name])
  expect(await search(KINDS[kind], esa, { from: 1, count: 200 })).toBeDefined()
})

describe('a mutant', () => {
  it.each(Object.values(KINDS))('changes one place of the package (%#)', ({ mutants }) =>
    checkMutants(mutants),
  )

  it('is refused if its snippet is not there', () => {
    const mutation = { file: 'idempotency/leased/lease.ts', from: 'no such line', to: '' }
    expect(() => checkMutants({ wrong: [mutation] })).toThrow('has the snippet 0 times: no such')
  })
})

it.each(Object.entries(KINDS))('a story is the same each time (%s)', async (_name, kind) => {
  const esa = await loadPackage()
  const again = await loadPackage()
  for (const seed of [3, 91, 544]) {
    const first = await tell(kind, kind.draw(seed), esa)
    const second = await tell(kind, kind.draw(seed), again)
    expect(first.history.lines.length).toBeGreaterThan(5)
    expect(second.history.lines).toEqual(first.history.lines)
    expect(second.events).toBe(first.events)
  }
})
