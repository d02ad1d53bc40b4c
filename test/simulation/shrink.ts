import type { Package } from './load.js'
import type { Verdict } from './oracle.js'
import { type Kind, type Told, tell } from './search.js'

/** How many stories it may take to find a shorter one. */
const MAX_TRIES = 600

/** The rule that was broken first; of what a story itself throws, all of it. */
const ruleOf = ({ broken: [first] }: Verdict): string | undefined =>
  first?.startsWith('story:') ? first : first?.split(':')[0]

/** The shortest story found that breaks the same rule. */
export async function shrink(kind: Kind, story: unknown, esa: Package): Promise<Told> {
  let best = await tell(kind, story, esa)
  const rule = ruleOf(best)
  let tries = 0
  let hasShrunk = true
  while (hasShrunk && tries < MAX_TRIES) {
    hasShrunk = false
    for (const candidate of shorter(best.story)) {
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

/** One change each: first with something less, then with something simpler. */
function* shorter(story: unknown): Generator<unknown> {
  yield* changed(story, fewer)
  yield* changed(story, simpler)
}

type Change = (name: string, value: unknown) => Generator<unknown>

/** The same with one of its parts changed, however deep it lies. */
function* changed(of: unknown, change: Change): Generator<unknown> {
  if (typeof of !== 'object' || of === null) return
  for (const [name, value] of Object.entries(of)) {
    for (const other of [...change(name, value), ...changed(value, change)])
      yield Array.isArray(of) ? of.with(Number(name), other) : { ...of, [name]: other }
  }
}

function* fewer(name: string, value: unknown): Generator<unknown> {
  if (Array.isArray(value)) for (const index of value.keys()) yield value.toSpliced(index, 1)
  if (name === 'users' && Number(value) > 1) yield Number(value) - 1
}

function* simpler(name: string, value: unknown): Generator<unknown> {
  if (name in SIMPLE && value !== SIMPLE[name]) yield SIMPLE[name]
}

/** The simplest value of each member of a story. */
const SIMPLE: Readonly<Record<string, unknown>> = {
  delayChance: 0,
  delayMs: 0,
  rate: 1,
  aheadMs: 0,
  isSingleUse: false,
  waitsForReplicas: false,
  asksAgain: false,
  settles: undefined,
  reusesToken: false,
  maxAttempts: 1,
  beforeMs: 0,
  afterMs: 0,
  ms: 1000,
  which: 0,
  stepMs: 1,
  connections: 20,
  isolation: 'read committed',
  sweepSeconds: false,
}
