import { Random, STEADY } from '../clock.js'
import { type Call, drawStory, type Happening, RETENTION_SECONDS, type Story } from '../story.js'

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
  return {
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
}
