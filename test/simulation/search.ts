import type { History } from './history.js'
import type { Mutants, Package } from './load.js'
import type { Verdict } from './oracle.js'

/** Where a story is told. */
interface Telling {
  readonly history: History
  readonly simulation: { readonly events: number }
  tell(): Promise<void>
  /** What the oracle says of the story that was told. */
  judge(): Verdict
}

/** What stories are of. */
export interface Kind<S = unknown> {
  /** Of all stories. */
  readonly share: number
  /** The story of a seed. */
  draw(seed: number): S
  begin(story: S, esa: Package): Telling
  /** Shorter and simpler stories, one change each. */
  shorter(story: S): Generator<S>
  readonly mutants: Mutants
}

/** A story that has been told and judged. */
export interface Told extends Verdict {
  readonly story: unknown
  readonly history: History
  readonly events: number
}

export async function tell(kind: Kind, story: unknown, esa: Package): Promise<Told> {
  const telling = kind.begin(story, esa)
  const { history, simulation } = telling
  const { stackTraceLimit } = Error
  // A story throws many errors, and nobody reads where.
  Error.stackTraceLimit = 0
  try {
    await telling.tell()
    return { story, history, events: simulation.events, ...telling.judge() }
  } catch (error) {
    const broken = [`story: ${(error as Error).message}`]
    return { story, history, events: simulation.events, broken, explained: [] }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** The first seed whose story breaks a promise. */
export async function search(
  kind: Kind,
  esa: Package,
  {
    from,
    count,
    onTold = () => {},
  }: { from: number; count: number; onTold?: (told: Told) => void },
): Promise<{ readonly seed: number; readonly told: Told } | undefined> {
  for (let seed = from; seed < from + count; seed += 1) {
    const told = await tell(kind, kind.draw(seed), esa)
    onTold(told)
    if (told.broken.length > 0) return { seed, told }
  }
  return undefined
}

/** How many stories it may take to find a shorter one. */
const MAX_TRIES = 600
const ruleOf = ({ broken }: Verdict): string | undefined => broken[0]?.split(':')[0]

/** The shortest story found that breaks the same rule. */
export async function shrink(kind: Kind, story: unknown, esa: Package): Promise<Told> {
  let best = await tell(kind, story, esa)
  const rule = ruleOf(best)
  let tries = 0
  let hasShrunk = true
  while (hasShrunk && tries < MAX_TRIES) {
    hasShrunk = false
    for (const candidate of kind.shorter(best.story)) {
      if (tries++ >= MAX_TRIES) break
      const told = await tell(kind, candidate, esa)
      if (ruleOf(told) !== rule) continue
      best = told
      hasShrunk = true
      break
    }
  }
  return best
}
