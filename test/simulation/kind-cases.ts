import { expect, it } from 'vitest'
import { KINDS } from './kinds.js'
import { checkMutants, loadPackage, mutantOf } from './load.js'
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
  const { mutants: known } = KINDS[kind]

  it.each(mutants)('notices that %s', async (name) => {
    const esa = await loadPackage(mutantOf(known, name))
    expect(await search(KINDS[kind], esa, { from: 1, count: 200 })).toBeDefined()
  })

  it('has mutants that change one place of the package each', () => checkMutants(known))

  it('tells the same story each time', async () => {
    const esa = await loadPackage()
    const again = await loadPackage()
    for (const seed of [3, 91, 544]) {
      const first = await tell(KINDS[kind], KINDS[kind].draw(seed), esa)
      const second = await tell(KINDS[kind], KINDS[kind].draw(seed), again)
      expect(first.history.lines.length).toBeGreaterThan(5)
      expect(second.history.lines).toEqual(first.history.lines)
    }
  })
}
