import fc from 'fast-check'
import { CHOICES } from './model-schedule.js'

/** What one start of a handler does. */
export interface Plan {
  /** How many rows it writes. */
  readonly parts: number
  readonly ending:
    | 'commit'
    | 'commit, too large to keep'
    | 'refuse'
    | 'refuse, keep writes'
    | 'roll back'
    | 'swallow an error'
    | 'hang'
  /** Whether it goes on writing after its answer; so many microtasks later. */
  readonly isLate: boolean
  readonly ticks: number
  readonly usesToken: boolean
}

/** A caller's request, and what its handler does each time that it is sent. */
export interface Call {
  readonly key: string
  readonly body: string
  readonly process: number
  readonly plans: readonly Plan[]
}

export interface Fault {
  /** After so many steps. */
  readonly at: number
  readonly type:
    | 'process dies'
    | 'connection is cut'
    /** As soon as there is one. */
    | 'COMMIT is cut off'
    | 'connection falls silent'
    | 'backend is ended'
    | 'database restarts'
    | 'locks are lost'
    | 'sweep'
  /** Which of those that there are. */
  readonly which: number
  /** Whether what has been sent arrives. */
  readonly dropsRequests: boolean
}

export interface Story {
  readonly calls: readonly Call[]
  readonly faults: readonly Fault[]
  /** The keys that have an expired record that nobody has swept. */
  readonly expired: readonly string[]
  readonly hasBatches: boolean
  /** How many transactions free their locks one after the other. */
  readonly splitReleases: number
  readonly choices: readonly number[]
}

const plan: fc.Arbitrary<Plan> = fc.record({
  parts: fc.integer({ min: 1, max: 2 }),
  ending: fc.oneof(
    { weight: 8, arbitrary: fc.constant<Plan['ending']>('commit') },
    { weight: 3, arbitrary: fc.constant<Plan['ending']>('refuse') },
    { weight: 2, arbitrary: fc.constant<Plan['ending']>('roll back') },
    {
      weight: 3,
      arbitrary: fc.constantFrom<Plan['ending'][]>(
        'commit, too large to keep',
        'refuse, keep writes',
        'swallow an error',
        'hang',
      ),
    },
  ),
  isLate: fc.boolean(),
  ticks: fc.nat(8),
  usesToken: fc.nat(4).map((one) => one === 4),
})

const call: fc.Arbitrary<Call> = fc.record({
  key: fc.constantFrom('a', 'a', 'a', 'a', 'b'),
  body: fc.constantFrom('one', 'one', 'one', 'one', 'other'),
  process: fc.nat(2),
  plans: fc.array(plan, { minLength: 1, maxLength: 3 }),
})

const fault: fc.Arbitrary<Fault> = fc.record({
  at: fc.nat(80),
  type: fc.constantFrom<Fault['type'][]>(
    'process dies',
    'connection is cut',
    'COMMIT is cut off',
    'COMMIT is cut off',
    'connection falls silent',
    'backend is ended',
    'database restarts',
    'locks are lost',
    'sweep',
  ),
  which: fc.nat(3),
  dropsRequests: fc.boolean(),
})

export const stories: fc.Arbitrary<Story> = fc.record({
  calls: fc.array(call, { minLength: 2, maxLength: 4, size: 'max' }),
  faults: fc.array(fault, { maxLength: 3, size: 'max' }),
  expired: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.constant(['a']) },
  ),
  hasBatches: fc.boolean(),
  splitReleases: fc.nat(1),
  choices: fc.array(fc.nat(CHOICES - 1), { maxLength: 240, size: 'max' }),
})
