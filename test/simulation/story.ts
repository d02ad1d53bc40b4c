import { type Clock, Random, STEADY } from './clock.js'
import type { Side, Weather } from './network.js'

export type Ending =
  | 'answers'
  | 'answers in parts'
  | 'answers too much'
  | 'streams'
  | 'fails'
  | 'destroys its response'
  | 'releases the key'
  // In a transaction only.
  | 'refuses'
  | 'refuses and keeps its writes'
  | 'swallows an error'
  | 'writes late'
  | 'hangs'
  /** Of its transaction, which the server has ended. */
  | 'passes on an error'

/** What a handler does in one run. */
export interface Plan {
  /** How long it works before and after its effect, in ms. */
  readonly beforeMs: number
  readonly afterMs: number
  readonly ending: Ending
}

/** A write by a caller: one call of `serviceFetch`. */
export interface Call {
  readonly at: number
  /** The process that makes it, and the service that this process belongs to. */
  readonly caller: number
  readonly service: string
  readonly key: string
  readonly body: string
  readonly plan: Plan
  readonly deadlineMs: number
  readonly attemptTimeoutMs: number
  readonly maxAttempts: number
  /** Sends the token of an earlier call once more. */
  readonly reusesToken: boolean
  /** Makes the same call once more, as soon as it has ended. */
  readonly asksAgain: boolean
  /** How an operator settles the key, if the caller hears that the outcome is unknown. */
  readonly settles: 'finished' | 'freed' | undefined
}

export const FAULTS = [
  'kill receiver',
  'freeze receiver',
  'stop receiver',
  'jump receiver clock',
  'cut link to Redis',
  'hold link to Redis',
  'silence link to Redis',
  'separate receiver from Redis',
  'cut call',
  'silence call',
  'freeze Redis',
  'restart Redis',
  'restart Redis without its last writes',
  'fail over',
  'stall replicas',
  'flush',
  'fill Redis',
  'jump Redis clock',
  'stop issuer',
] as const

const COMMON_FAULTS: (typeof FAULTS)[number][] = [
  'kill receiver',
  'freeze receiver',
  'fail over',
  'fail over',
  'cut link to Redis',
  'hold link to Redis',
  'jump Redis clock',
]

/** What happens besides the calls. */
export const ACTS = [
  'settle as done',
  'settle as free',
  'deny',
  'allow',
  'add key',
  'remove key',
] as const

export interface Happening {
  readonly what: (typeof FAULTS)[number] | (typeof ACTS)[number] | 'end a backend'
  /**
   * In ms, after so many commands of Redis (between a command and its reply, too), or after so many messages
   * of receivers, while the last one is under way.
   */
  readonly at: number
  readonly unit: 'ms' | 'commands' | 'messages'
  /** Which of those that there are. */
  readonly which: number
  readonly ms: number
  /** The sides whose messages are lost. */
  readonly drops: readonly Side[]
}

/** The store of a coupled story, and its server. */
export interface CoupledRoute {
  /** How long a step of a statement takes, at most, in ms. */
  readonly stepMs: number
  readonly connections: number
  readonly transactionMs: number
  readonly resolveMs: number
  readonly isolation: 'read committed' | 'repeatable read'
  readonly retentionSeconds: number
  readonly sweepSeconds: number | false
  readonly isTokenSpentWithin: boolean
}

export interface Story {
  readonly seed: number
  readonly weather: Weather
  readonly receivers: readonly Clock[]
  readonly redis: { readonly clock: Clock; readonly replicas: number; readonly lagMs: number }
  readonly waitsForReplicas: boolean
  readonly leaseSeconds: number
  readonly maxRunSeconds: number
  readonly whenAbandoned: 'refuse' | 'rerun'
  readonly isSingleUse: boolean
  /** With a coupled store: what its route and its server are like. */
  readonly coupled?: CoupledRoute
  readonly hasDenylist: boolean
  /** How long a message from and to the operator takes, besides what all take. */
  readonly operatorDistanceMs: number
  readonly calls: readonly Call[]
  readonly happenings: readonly Happening[]
  /** Whether all receivers are killed and start again before the last calls. */
  readonly restartsAtEnd: boolean
  /** For how long a key set outlives its `max-age` while the issuer is down. */
  readonly staleIfErrorSeconds: number
  /** What happens to the keys of the issuer at the end, for longer than a receiver keeps them. */
  readonly keysAtEnd:
    | 'removed'
    | 'removed, issuer down'
    | 'removed, receivers frozen'
    | 'issuer down'
    | undefined
}

/** After so long no further fault happens, in ms. */
export const CALM_AT_MS = 12_000
/** What a fault leaves behind lasts a little longer than the fault: connections, retries. */
export const SETTLE_MS = 3000
/** Longer than every story, which does not wait for the end of a record. */
export const RETENTION_SECONDS = 600
const ISSUED_KEYS = ['a', 'a', 'a', 'b', 'b', 'c', 'd', 'e', 'f']

/** The story of a seed. */
export function drawStory(seed: number): Story {
  const random = new Random(seed)
  const few = (most: number): number => 1 + Math.floor(random.next() * random.next() * most)
  const isQuiet = random.chance(0.15)
  const keys = random.pick([1, 1, 2, 3, 6])
  const replicas = random.pick([0, 1, 1, 2])
  const leaseSeconds = random.pick([1, 1, 2, 3, 10])
  const route = { leaseSeconds, keys, isSingleUse: random.chance(0.4) }
  const hasDenylist = random.chance(0.2)
  const callers = few(5)
  const keysAtEnd = random.chance(0.2)
    ? random.pick([
        'removed',
        'removed, issuer down',
        'removed, receivers frozen',
        'issuer down',
      ] as const)
    : undefined
  const story: Story = {
    seed,
    weather: drawWeather(random, isQuiet),
    receivers: Array.from({ length: few(4) }, () => drawClock(random)),
    redis: { clock: drawClock(random), replicas, lagMs: random.pick([1, 50, 50, 300]) },
    waitsForReplicas: replicas > 0 && random.chance(0.6),
    leaseSeconds,
    maxRunSeconds: random.pick([1, 2, 3600, 3600]),
    whenAbandoned: random.chance(0.7) ? 'refuse' : 'rerun',
    isSingleUse: route.isSingleUse,
    hasDenylist,
    operatorDistanceMs: random.pick([0, 200]),
    calls: Array.from({ length: 1 + few(6) }, () => drawCall(random, { ...route, callers })),
    happenings: [
      ...(hasDenylist ? drawDenial(random) : []),
      ...Array.from({ length: isQuiet ? 0 : few(6) }, () => drawHappening(random, hasDenylist)),
    ],
    restartsAtEnd: random.chance(0.2),
    staleIfErrorSeconds: random.pick([0, 60]),
    keysAtEnd,
  }
  if (random.chance(0.9)) return story
  return random.chance(0.5) ? withLateReservation(random, story) : withLateRenewal(random, story)
}

const CALM = { delayChance: 0, delayMs: 0 }

/** A reservation is under way while another run frees its key. */
function withLateReservation(random: Random, story: Story): Story {
  const [first, second, ...others] = story.calls as [Call, Call, ...Call[]]
  const { caller, service, key, body } = first
  const plan: Plan = {
    beforeMs: Math.round(random.between(50, 500)),
    afterMs: 0,
    ending: 'releases the key',
  }
  const rival = { ...second, caller, service, key, body, at: Math.round(random.between(0, 100)) }
  const what = 'hold link to Redis'
  const at = 1 + random.below(25)
  const ms = Math.round(random.between(300, LONGEST_DELAY_MS))
  return {
    ...story,
    weather: { ...story.weather, ...CALM },
    calls: [{ ...first, at: 0, plan }, rival, ...others],
    happenings: [{ what, at, unit: 'messages', which: random.below(3), ms, drops: [] }],
  }
}

/** A run renews its lease while an operator settles its key. */
function withLateRenewal(random: Random, story: Story): Story {
  const [first, ...others] = story.calls as [Call, ...Call[]]
  const leaseMs = story.leaseSeconds * 1000
  const common = { unit: 'ms', which: 0, drops: [] } as const
  const ms = leaseMs + Math.round(random.between(200, 1700))
  const settles = random.pick(['settle as free', 'settle as done'] as const)
  return {
    ...story,
    receivers: story.receivers.slice(0, 1),
    maxRunSeconds: 3600,
    operatorDistanceMs: 200,
    weather: { ...story.weather, ...CALM },
    calls: [
      { ...first, at: 0, plan: { beforeMs: 0, afterMs: 2 * leaseMs, ending: 'answers' } },
      ...others,
    ],
    happenings: [
      { ...common, what: 'freeze receiver', at: 300, ms },
      { ...common, what: settles, at: 300 + ms - Math.round(random.between(600, 2200)), ms: 0 },
    ],
  }
}

/** Less than the shortest lease: what is later than a lease is no longer known to be undone. */
export const LONGEST_DELAY_MS = 900

function drawWeather(random: Random, isQuiet: boolean): Weather {
  const latencyMs = random.pick([0.2, 1, 1, 5])
  if (isQuiet || random.chance(0.4)) return { latencyMs, delayChance: 0, delayMs: 0 }
  return {
    latencyMs,
    delayChance: random.pick([0.01, 0.1]),
    delayMs: random.pick([20, 300, LONGEST_DELAY_MS]),
  }
}

const drawClock = (random: Random): Clock =>
  random.chance(0.5)
    ? STEADY
    : { rate: 1 + random.between(-0.01, 0.01), aheadMs: Math.round(random.between(-2000, 2000)) }

interface RouteOfCalls {
  readonly leaseSeconds: number
  readonly keys: number
  readonly isSingleUse: boolean
  readonly callers: number
}

function drawCall(
  random: Random,
  { leaseSeconds, keys, isSingleUse, callers }: RouteOfCalls,
): Call {
  const isLate = random.chance(0.15)
  const caller = random.below(callers)
  return {
    at: Math.round(
      isLate ? random.between(0, CALM_AT_MS) : random.between(0, 1500) * random.next(),
    ),
    caller,
    service: caller === 4 ? 'reporting' : 'billing',
    key: ISSUED_KEYS.slice(0, keys + 2)[random.below(keys + 2)] as string,
    body: random.chance(0.9) ? 'tea' : 'coffee',
    plan: drawPlan(random, leaseSeconds),
    deadlineMs: random.pick([1000, 5000, 20_000]),
    attemptTimeoutMs: random.pick([300, 1000, 10_000]),
    maxAttempts: random.pick([1, 4, 10]),
    reusesToken: random.chance(isSingleUse ? 0.15 : 0.3),
    asksAgain: random.chance(0.3),
    settles: random.pick([undefined, undefined, 'finished', 'freed'] as const),
  }
}

/** A run, of two such parts, ends before the last calls give up. */
const LONGEST_WORK_MS = 12_000

function drawPlan(random: Random, leaseSeconds: number): Plan {
  const workMs = (): number => {
    const long = random.chance(0.2) ? Math.min(leaseSeconds * 4000, LONGEST_WORK_MS) : 60
    return random.chance(0.3) ? 0 : Math.round(random.next() * long)
  }
  const ending = random.chance(0.6)
    ? 'answers'
    : random.pick([
        'answers in parts',
        'answers too much',
        'streams',
        'fails',
        'destroys its response',
        'releases the key',
      ] as const)
  return { beforeMs: workMs(), afterMs: workMs(), ending }
}

/** A caller is denied; then the server may lose that, and the caller may be allowed again. */
function drawDenial(random: Random): readonly Happening[] {
  const common = { unit: 'ms', which: 0, ms: 500, drops: [] } as const
  const at = Math.round(random.between(0, 6000))
  const loss = [
    { ...common, what: 'stall replicas', at, ms: 5000 },
    { ...common, what: 'fail over', at: at + 3000 },
  ] as const
  return [
    { ...common, what: 'deny', at },
    ...(random.chance(0.4) ? loss : []),
    ...(random.chance(0.4) ? [{ ...common, what: 'allow', at: at + 5000 } as const] : []),
  ]
}

function drawHappening(random: Random, hasDenylist: boolean): Happening {
  const isAct = random.chance(hasDenylist ? 0.4 : 0.15)
  const acts = hasDenylist ? ACTS : ACTS.filter((act) => act !== 'deny' && act !== 'allow')
  const unit = random.pick(['commands', 'messages', 'ms'] as const)
  const drops = random.pick([[], ['client'], ['server'], ['client', 'server']] as Side[][])
  return {
    what: isAct ? random.pick(acts) : random.pick(random.chance(0.5) ? COMMON_FAULTS : FAULTS),
    at:
      unit === 'ms'
        ? Math.round(random.next() * random.next() * 8000)
        : 1 + Math.floor(random.next() * random.next() * 50),
    unit,
    which: random.below(8),
    ms: Math.round(random.next() * random.next() * 6000),
    drops,
  }
}
