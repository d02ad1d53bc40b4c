import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  advance,
  eventsBetween,
  freshnessAt,
  INITIAL_STATE,
  type ListEvent,
  type ListState,
  listHealth,
} from '../../../src/verification/denylist/list-state.js'
import type { LocalEntry, ReadList } from '../../../src/verification/denylist/merge-entries.js'
import { caller, MAX_STALE_SECONDS, momentAt, START_SECONDS } from './story.js'

const RUNS = Number(process.env['MODEL_RUNS'] ?? 2000)

const TARGETS = ['a', 'b', 'c']
const target = fc.constantFrom(...TARGETS)
/** Seconds from now. */
const lasting = fc.option(fc.integer({ min: 1, max: 40 }), { nil: Number.POSITIVE_INFINITY })

type Step =
  | { type: 'deny'; target: string; lasting: number }
  | { type: 'allow'; target: string }
  | { type: 'copy' | 'fail over' | 'flush' | 'look' | 'miss' }
  | { type: 'skew'; seconds: number }

const writing: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ type: fc.constant('deny' as const), target, lasting }),
  fc.record({ type: fc.constant('allow' as const), target }),
)
const looking: fc.Arbitrary<Step> = fc.record({
  type: fc.constantFrom('look' as const, 'look' as const, 'miss' as const),
})
const losing: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ type: fc.constantFrom('copy' as const, 'fail over' as const, 'flush' as const) }),
  fc.record({ type: fc.constant('skew' as const), seconds: fc.integer({ min: -20, max: 20 }) }),
)
const gapMs = fc.oneof(fc.nat({ max: 500 }), fc.nat({ max: 15_000 }))
const storyOf = (step: fc.Arbitrary<Step>) =>
  fc.array(fc.tuple(gapMs, step), { minLength: 1, maxLength: 60 })
const intactStory = storyOf(fc.oneof(writing, looking))
const anyStory = storyOf(fc.oneof(writing, looking, losing))

interface Copy {
  number: number
  nonce: string
  entries: Map<string, LocalEntry>
  marks: Map<string, number>
}

/** What the scripts in Redis do, told once more. */
function modelServer() {
  let state: Copy = { number: 0, nonce: '', entries: new Map(), marks: new Map() }
  let saved = structuredClone(state)
  let writes = 0
  let skew = 0
  const publish = (atMs: number, highestReported: number): number => {
    const clock = (START_SECONDS + skew) * 1000 + atMs
    state.number = Math.max(clock, state.number + 1, highestReported + 1)
    state.nonce = `write ${++writes}`
    return state.number
  }
  const secondsAt = (atMs: number): number => START_SECONDS + skew + atMs / 1000

  return {
    list: (atMs: number): ReadList => ({
      version: { number: state.number, nonce: state.nonce },
      serverSeconds: secondsAt(atMs),
      entries: new Map(state.entries),
      tombstones: new Map(state.marks),
    }),
    take(step: Step, atMs: number, highestReported: number): void {
      if (step.type === 'deny') {
        const now = secondsAt(atMs)
        const old = state.entries.get(step.target)
        const isLive = old !== undefined && old.endsAt > now
        const endsAt = Math.max(now + step.lasting, isLive ? old.endsAt : 0)
        const number = publish(atMs, highestReported)
        state.entries.set(step.target, caller({ value: step.target, number, endsAt }))
      }
      if (step.type === 'allow') {
        state.entries.delete(step.target)
        state.marks.set(step.target, publish(atMs, highestReported))
      }
      if (step.type === 'copy') saved = structuredClone(state)
      if (step.type === 'fail over') state = structuredClone(saved)
      if (step.type === 'flush') {
        state = { number: 0, nonce: '', entries: new Map(), marks: new Map() }
      }
      if (step.type === 'skew') skew = step.seconds
    },
  }
}

interface Scene {
  readonly before: ListState
  readonly now: ListState
  readonly event: ListEvent
  readonly list: ReadList
  readonly atMs: number
  readonly step: Step
}

/** Tells a story to a receiver, and looks at each step that reaches it. */
function tell(story: readonly (readonly [number, Step])[], see: (scene: Scene) => void): void {
  const server = modelServer()
  let life = INITIAL_STATE
  let atMs = 0
  for (const [gap, step] of story) {
    atMs += gap
    server.take(step, atMs, life.highestNumber)
    if (step.type !== 'look' && step.type !== 'miss') continue
    const list = server.list(atMs)
    const event = eventOf(step, list, { life, atMs })
    const next = advance(life, event, MAX_STALE_SECONDS)
    see({ before: life, now: next, event, list, atMs, step })
    life = next
  }
}

function eventOf(
  step: Step,
  list: ReadList,
  { life, atMs }: { life: ListState; atMs: number },
): ListEvent {
  const at = momentAt(atMs)
  if (step.type === 'miss') return { type: 'failed', at, code: 'timeout' }
  const { version, serverSeconds } = list
  const isKnown = version.number === life.version.number && version.nonce === life.version.nonce
  return isKnown && life.confirmedAt !== undefined
    ? { type: 'unchanged', at, requestedAt: at, serverSeconds }
    : { type: 'read', at, requestedAt: at, list }
}

function inEvery(story: typeof anyStory, look: () => (scene: Scene) => void): void {
  fc.assert(
    fc.property(story, (steps) => tell(steps, look())),
    { numRuns: RUNS },
  )
}

it('what is held goes only at its end or by a newer mark, whatever the server loses', () => {
  inEvery(anyStory, () => ({ before, now, list }) => {
    for (const [name, entry] of before.local.entries) {
      const left = now.local.entries.get(name)
      const hasEnded = entry.endsAt <= list.serverSeconds
      const isAllowed = entry.number < (list.tombstones.get(name) ?? 0)
      if (hasEnded || isAllowed) continue
      expect(left?.endsAt).toBeGreaterThanOrEqual(entry.endsAt)
      expect(left?.number).toBeGreaterThanOrEqual(entry.number)
    }
  })
})

it('whatever the list has is held, unless it has ended', () => {
  inEvery(anyStory, () => ({ now, event, list }) => {
    if (event.type !== 'read') return
    for (const [name, entry] of list.entries) {
      if (entry.endsAt > list.serverSeconds) expect(now.local.entries.has(name)).toBe(true)
    }
  })
})

it('on a server that loses nothing, exactly what is listed is held', () => {
  inEvery(intactStory, () => ({ now, event, list }) => {
    if (event.type === 'failed') return
    const live = [...list.entries].filter(([, { endsAt }]) => endsAt > list.serverSeconds)
    expect(new Map(live)).toEqual(now.local.entries)
    expect(now.local.retained.size).toBe(0)
  })
})

it('an allow ends what is held, whatever the server has lost before', () => {
  fc.assert(
    fc.property(anyStory, target, (steps, allowed) => {
      const ending: [number, Step][] = [
        [1, { type: 'look' }],
        [1, { type: 'allow', target: allowed }],
        [1, { type: 'look' }],
      ]
      let last = INITIAL_STATE
      tell([...steps, ...ending], (scene) => {
        last = scene.now
      })
      expect(last.local.entries.has(allowed)).toBe(false)
    }),
    { numRuns: RUNS },
  )
})

it('a failure changes nothing that is held, and nothing of its age', () => {
  inEvery(anyStory, () => ({ before, now, event }) => {
    if (event.type !== 'failed') return
    expect(now.local).toBe(before.local)
    expect(now.confirmedAt).toBe(before.confirmedAt)
    expect(now.version).toBe(before.version)
  })
})

it('no entry that has ended is held after an answer', () => {
  inEvery(anyStory, () => ({ now, event, list }) => {
    if (event.type === 'failed') return
    for (const { endsAt } of now.local.entries.values()) {
      expect(endsAt).toBeGreaterThan(list.serverSeconds)
    }
    expect(now.nextEndAt).toBe(
      Math.min(...[...now.local.entries.values()].map(({ endsAt }) => endsAt)),
    )
  })
})

it('its health says what it is, as JSON too', () => {
  inEvery(anyStory, () => ({ now, list, atMs }) => {
    const health = listHealth(now, momentAt(atMs), MAX_STALE_SECONDS)
    expect(health.state).toBe(freshnessAt(now, momentAt(atMs), MAX_STALE_SECONDS))
    expect(health.entries).toBe(now.local.entries.size)
    const lacks = [...now.local.entries].some(([name, { endsAt }]) => {
      const listed = list.entries.get(name)
      return listed === undefined || listed.endsAt < endsAt
    })
    if (now.lastFailure === undefined) expect(health.regressed === true).toBe(lacks)
    expect(JSON.parse(JSON.stringify(health))).toEqual(health)
  })
})

it('what is told goes from good to bad and back, step by step', () => {
  inEvery(anyStory, () => {
    let isBad = false
    return ({ before, now }) => {
      for (const { type } of eventsBetween(before, now)) {
        if (type === 'stale' || type === 'expired') isBad = true
        if (type !== 'recovered') continue
        expect(isBad).toBe(true)
        isBad = false
      }
    }
  })
})
