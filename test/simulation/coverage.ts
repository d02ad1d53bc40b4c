const nameOf = (from: string, event: string, to: string): string => `${from} --${event}--> ${to}`

/** The transitions of each machine. */
const POSSIBLE: Readonly<Record<string, readonly string[]>> = {
  response: [
    nameOf('buffering', 'asks the store', 'waiting'),
    nameOf('waiting', 'the store replies', 'released'),
    nameOf('buffering', 'is destroyed', 'released'),
    ...['buffering', 'waiting'].map((from) => nameOf(from, 'is discarded', 'discarded')),
  ],
  denylist: [
    ...['cold', 'fresh', 'stale', 'expired'].flatMap((from) => [
      nameOf(from, 'read', 'fresh'),
      nameOf(from, 'failed', from),
    ]),
    ...['fresh', 'stale', 'expired'].map((from) => nameOf(from, 'unchanged', 'fresh')),
    nameOf('fresh', 'failed', 'stale'),
    nameOf('stale', 'failed', 'expired'),
  ],
  'key set': [
    ...['cold', 'fresh', 'stale', 'expired'].flatMap((from) => [
      nameOf(from, 'fetched', 'fresh'),
      nameOf(from, 'failed', from),
    ]),
    ...['fresh', 'stale'].map((from) => nameOf(from, 'not_modified', 'fresh')),
    nameOf('expired', 'not_modified', 'expired'),
    nameOf('stale', 'failed', 'expired'),
    nameOf('stale', 'time_passed', 'expired'),
  ],
  retry: [
    ...['in_progress', 'unavailable', 'network', 'no_token'].flatMap((outcome) => [
      nameOf(outcome, 'attempt', 'retry'),
      nameOf(outcome, 'last attempt', 'end'),
    ]),
    ...['replayed', 'answered', 'deadline'].map((outcome) => nameOf(outcome, 'attempt', 'end')),
    nameOf('token_refused', 'attempt', 'another_token'),
    nameOf('token_refused', 'attempt', 'end'),
    nameOf('token_refused', 'last attempt', 'end'),
  ],
}

const seen = new Map<string, Map<string, number>>()

/** Counts one transition of a machine. */
export function count(machine: string, from: string, event: string, to: string): void {
  const transitions = seen.get(machine) ?? new Map<string, number>()
  seen.set(machine, transitions)
  const name = nameOf(from, event, to)
  transitions.set(name, (transitions.get(name) ?? 0) + 1)
}

/** A table a machine, the rarest transition last, then those that were never seen. */
export function coverageText(): string {
  return [...seen].sort().map(tableOf).join('\n\n')
}

function tableOf([machine, transitions]: [string, Map<string, number>]): string {
  const possible = POSSIBLE[machine] ?? []
  const never = possible.filter((name) => !transitions.has(name))
  return [
    `${machine}: ${possible.length - never.length} of ${possible.length} transitions`,
    ...[...transitions]
      .sort(([, a], [, b]) => b - a)
      .map(([name, times]) => `${String(times).padStart(9)}  ${name}`),
    ...never.map((name) => `    never  ${name}`),
  ].join('\n')
}
