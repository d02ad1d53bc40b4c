import type { Package } from './load.js'
import { judge, type Verdict } from './oracle.js'
import { drawStory, type Story } from './story.js'
import { World } from './world.js'

export interface Told extends Verdict {
  readonly world: World
}

/** Tells a story and judges it. */
export async function tell(story: Story, esa: Package): Promise<Told> {
  const world = new World(story, esa)
  const { stackTraceLimit } = Error
  // A story throws many errors, and nobody reads where.
  Error.stackTraceLimit = 0
  try {
    await world.tell()
  } catch (error) {
    return { world, broken: [`story: ${(error as Error).message}`], explained: [] }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  const { broken, explained } = judge(story, world.stage.history, {
    left: world.left,
    storedAs: world.stage.storedAs,
  })
  return { world, broken, explained }
}

/** The first seed whose story breaks a promise. */
export async function search(
  esa: Package,
  {
    from,
    count,
    onTold = () => {},
  }: { from: number; count: number; onTold?: (told: Told) => void },
): Promise<{ readonly seed: number; readonly told: Told } | undefined> {
  for (let seed = from; seed < from + count; seed += 1) {
    const told = await tell(drawStory(seed), esa)
    onTold(told)
    if (told.broken.length > 0) return { seed, told }
  }
  return undefined
}
