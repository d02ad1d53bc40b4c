import type { ManyCallsResult } from '../protocol.js'

export interface CountedCall {
  readonly status: number | undefined
  readonly reason: string | undefined
  readonly isReplay: boolean
}

/** How many calls got each answer, the most frequent first. */
export function tally(calls: readonly CountedCall[]): ManyCallsResult['answers'] {
  const groups = new Map<string, { call: CountedCall; calls: number }>()
  for (const call of calls) {
    const name = JSON.stringify([call.status, call.reason, call.isReplay])
    const group = groups.get(name) ?? { call, calls: 0 }
    group.calls += 1
    groups.set(name, group)
  }
  return [...groups.values()]
    .toSorted((one, other) => other.calls - one.calls)
    .map(({ call, calls: count }) => ({ ...call, calls: count }))
}
