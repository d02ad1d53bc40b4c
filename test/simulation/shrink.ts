import { STEADY } from './clock.js'
import type { Call, Happening, Story } from './story.js'

/** Shorter and simpler stories, one change each. */
export function* shorter(story: Story): Generator<Story> {
  const { calls, happenings, receivers } = story
  for (const [index] of calls.entries()) yield { ...story, calls: calls.toSpliced(index, 1) }
  for (const [index] of happenings.entries())
    yield { ...story, happenings: happenings.toSpliced(index, 1) }
  if (receivers.length > 1) yield { ...story, receivers: receivers.slice(1) }
  yield* simpler(story, {
    weather: { ...story.weather, delayChance: 0, delayMs: 0 },
    isSingleUse: false,
    waitsForReplicas: false,
    receivers: receivers.map(() => STEADY),
    redis: { ...story.redis, clock: STEADY },
  })
  if (story.coupled !== undefined) {
    for (const coupled of simpler(story.coupled, SIMPLE_ROUTE)) yield { ...story, coupled }
  }
  for (const [index, call] of calls.entries()) {
    const plain: Partial<Call> = {
      asksAgain: false,
      settles: undefined,
      reusesToken: false,
      maxAttempts: 1,
    }
    const plan = { ...call.plan, beforeMs: 0, afterMs: 0 }
    for (const each of simpler(call, { ...plain, plan }))
      yield { ...story, calls: calls.with(index, each) }
  }
  for (const [index, happening] of happenings.entries()) {
    const plain: Partial<Happening> = { ms: 1000, which: 0, drops: [] }
    for (const each of simpler(happening, plain))
      yield { ...story, happenings: happenings.with(index, each) }
  }
}

const SIMPLE_ROUTE = {
  stepMs: 1,
  connections: 20,
  isolation: 'read committed',
  sweepSeconds: false,
} as const

/** One simpler value at a time. */
function* simpler<T extends object>(of: T, values: Partial<T>): Generator<T> {
  for (const [name, value] of Object.entries(values)) {
    if (JSON.stringify(of[name as keyof T]) !== JSON.stringify(value))
      yield { ...of, [name]: value }
  }
}
