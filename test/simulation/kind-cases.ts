import { describe, expect, it } from 'vitest'
import { KINDS } from './kinds.js'
import { checkMutants, loadPackage } from './load.js'
import { search, tell } from './search.js'
import { textOf } from './time-line.js'

/** Tells the first stories of a kind. */
export function tellsStories(kind: keyof typeof KINDS, count: number): void {
  it(`keeps every promise in ${count} stories (${kind})`, { timeout: 600_000 }, async () => {
    const found = await search(KINDS[kind], await loadPackage(), { from: 1, count })
    expect(found && textOf(found.told)).toBeUndefined()
  })
}

/** What stories of a kind are worth: they find wrong versions, and a seed tells the same story again. */
export function provesStories(kind: keyof typeof KINDS, mutants: readonly string[]): void {
  const { mutants: snippets } = KINDS[kind]

  it.each(mutants)('notices that %s', async (name) => {
    const esa = await loadPackage(snippets[name])
    expect(await search(KINDS[kind], esa, { from: 1, count: 200 })).toBeDefined()
  })

  describe('a mutant', () => {
    it('changes one place of the package', () => checkMutants(snippets))

    it('is refused if its snippet is not there', () => {
      const mutation = { file: 'idempotency/leased/leased-run.ts', from: 'no such line', to: '' }
      expect(() => checkMutants({ wrong: [mutation] })).toThrow('has the snippet 0 times: no such')
    })
  })

  it('tells the same story each time', async () => {
    const esa = await loadPackage()
    const again = await loadPackage()
    for (const seed of [3, 91, 544]) {
      const first = await tell(KINDS[kind], KINDS[kind].draw(seed), esa)
      const second = await tell(KINDS[kind], KINDS[kind].draw(seed), again)
      expect(first.history.lines.length).toBeGreaterThan(5)
      expect(second.history.lines).toEqual(first.history.lines)
      expect(second.events).toBe(first.events)
    }
  })
}
