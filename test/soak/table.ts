/** An effect of a write, or an answer that names it. */
export interface Row {
  readonly key: string
  readonly effect: string
  /** By the clock of the machine, in milliseconds. */
  readonly at: number
}

/** Another server has become the primary of a shard. */
export interface Failover {
  readonly shard: string
  /** When the replica was last known to be in step, and when the new primary's was. */
  readonly from: number
  readonly to: number
}

interface Evidence {
  /** The table of effects, the first of a key first. */
  readonly rows: readonly Row[]
  readonly answers: readonly Row[]
  readonly failovers: readonly Failover[]
  /** The shard that has the record of a key. */
  shardOf(key: string): string
}

interface Judgement {
  /** Keys with more than one effect, and answers whose effect is not in the table. */
  readonly doubled: number
  readonly disagreeing: number
  /** What of these follows from a failover, and what does not. */
  readonly explained: readonly string[]
  readonly unexplained: readonly string[]
}

/** For what a replica that is in step does not have yet. */
const LAG_MS = 1000

/**
 * Compares the answers with the table. An effect whose write had another one later, or which is not in the table
 * although it was answered, was lost: that follows from a failover of its shard during which it happened.
 */
export function judge({ rows, answers, failovers, shardOf }: Evidence): Judgement {
  const table = new Map<string, Row[]>()
  for (const row of rows) table.set(row.key, [...(table.get(row.key) ?? []), row])
  const doubled = [...table.values()].filter((effects) => effects.length > 1)
  const disagreeing = answers.filter(
    ({ key, effect }) => !table.get(key)?.some((row) => row.effect === effect),
  )
  const lost = [...doubled.flatMap((effects) => effects.slice(0, -1)), ...disagreeing]
  const explained: string[] = []
  const unexplained: string[] = []
  for (const { key, effect, at } of lost) {
    const shard = shardOf(key)
    const again = table.get(key)?.map((row) => secondsOf(row.at))
    const text = `${key}: lost ${effect} of ${secondsOf(at)} on ${shard}; its effects: ${again}`
    const cause = failovers.find(
      ({ from, to, ...other }) => other.shard === shard && at > from - LAG_MS && at < to,
    )
    if (cause === undefined) unexplained.push(text)
    else explained.push(`${text}; failover ${secondsOf(cause.from)} to ${secondsOf(cause.to)}`)
  }
  return { doubled: doubled.length, disagreeing: disagreeing.length, explained, unexplained }
}

/** Of this process. */
export const secondsOf = (at: number): string =>
  `${((at - performance.timeOrigin) / 1000).toFixed(1)} s`
