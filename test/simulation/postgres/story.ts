import { Random, STEADY } from '../clock.js'
import {
  type Call,
  drawStory,
  type Happening,
  type Plan,
  RETENTION_SECONDS,
  type Story,
} from '../story.js'

const ENDINGS = [
  'refuses',
  'refuses',
  'refuses and keeps its writes',
  'swallows an error',
  'writes late',
  'writes late',
  'hangs',
] as const

/** What has no meaning without Redis: it is replaced by what its kin is in Postgres. */
const KIN: Partial<Record<Happening['what'], Happening['what']>> = {
  'settle as done': 'end a backend',
  'settle as free': 'end a backend',
  deny: 'add key',
  allow: 'remove key',
  'restart Redis without its last writes': 'restart Redis',
  'fail over': 'restart Redis',
  'stall replicas': 'freeze Redis',
  flush: 'end a backend',
  'fill Redis': 'end a backend',
}

/** The story of a seed, with a coupled store: that of the leased one, as far as it has a meaning here. */
export function drawCoupledStory(seed: number): Story {
  const story = drawStory(seed)
  const random = new Random(~seed)
  /** Everybody asks for the same at once. */
  const isCrowded = random.chance(0.5)
  const call = (each: Call): Call => ({
    ...each,
    at: isCrowded ? random.below(100) : each.at,
    key: isCrowded ? 'a' : each.key,
    plan: { ...each.plan, ending: random.chance(0.35) ? random.pick(ENDINGS) : each.plan.ending },
    settles: undefined,
  })
  const coupled: Story = {
    ...story,
    hasDenylist: false,
    waitsForReplicas: false,
    whenAbandoned: 'refuse',
    keysAtEnd: undefined,
    receivers: isCrowded ? [...story.receivers, STEADY] : story.receivers,
    calls: (isCrowded ? [...story.calls, ...story.calls] : story.calls).map(call),
    happenings: story.happenings.map((each) => ({ ...each, what: KIN[each.what] ?? each.what })),
    coupled: {
      stepMs: random.pick([0.5, 5, 5, 80]),
      connections: random.pick([2, 20, 20]),
      transactionMs: random.pick([1000, 5000]),
      resolveMs: random.pick([500, 3000]),
      isolation: random.chance(0.5) ? 'repeatable read' : 'read committed',
      retentionSeconds: random.chance(0.2) ? 2 : RETENTION_SECONDS,
      sweepSeconds: random.pick([1, false]),
      isTokenSpentWithin: random.chance(0.6),
    },
  }
  return random.chance(0.1) ? withLostCommit(random, coupled) : coupled
}

/** A message of a receiver is lost, perhaps its COMMIT, and the receiver freezes until another has run. */
function withLostCommit(random: Random, story: Story): Story {
  const [first, second, ...others] = story.calls as [Call, Call, ...Call[]]
  const { caller, service, key, body } = first
  const plan: Plan = { beforeMs: 0, afterMs: 0, ending: random.pick(['answers', 'streams']) }
  const patient = { deadlineMs: 20_000, attemptTimeoutMs: 10_000, maxAttempts: 10, plan }
  const when = { unit: 'messages', at: 1 + random.below(25), which: 1 } as const
  return {
    ...story,
    isSingleUse: false,
    receivers: [...story.receivers, STEADY],
    calls: [
      { ...first, ...patient, at: 0 },
      { ...second, ...patient, caller, service, key, body, at: random.below(100) },
      ...others,
    ],
    happenings: [
      { ...when, what: 'cut link to Redis', ms: 0, drops: ['client'] },
      { ...when, what: 'freeze receiver', ms: random.between(1000, 6000), drops: [] },
    ],
  }
}
