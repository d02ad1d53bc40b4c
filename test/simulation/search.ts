import type { History } from './history.js'
import type { Mutants, Package } from './load.js'
import type { Verdict } from './oracle.js'

/** Where a story is told. */
interface Telling {
  readonly history: History
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
  readonly mutants: Mutants
}

/** A story that has been told and judged. */
export interface Told extends Verdict {
  readonly story: unknown
  readonly history: History
}

export async function tell(kind: Kind, story: unknown, esa: Package): Promise<Told> {
  const telling = kind.begin(story, esa)
  const { history } = telling
  const { stackTraceLimit } = Error
  // A story throws many errors, and nobody reads where.
  Error.stackTraceLimit = 0
  try {
    await telling.tell()
    return { story, history, ...telling.judge() }
  } catch (error) {
    const broken = [`story: ${(error as Error).message}`]
    return { story, history, broken, explained: [] }
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
