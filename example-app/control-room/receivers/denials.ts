import type { DeniedState, DeniedThing, DenyOrder, ReceiverName } from '../protocol.js'
import { checkThing, entryOf, isThing, nameOf, type ThingEntry } from './denied-thing.js'
import { explaining } from './explaining.js'
import type { Containment } from './open-shared.js'

export interface Denials {
  deny(order: DenyOrder): Promise<void>
  allow(thing: DeniedThing): Promise<void>
  list(): readonly DeniedState[]
  /** What a receiver shuts out from a moment on. */
  inForce(receiver: ReceiverName, at: number, things: readonly string[]): void
  /** A receiver serves anew: what it applies, it applies since then at the earliest. */
  begun(receiver: ReceiverName): void
  gone(receiver: ReceiverName): void
  close(): void
}

export interface DenialsOptions {
  readonly issuer: string
  readonly containment: Containment
  onChange(): void
}

type Denial = Omit<DeniedState, 'appliedAfter'>

/** What a receiver shuts out, each thing since when. */
interface Applying {
  readonly begunAt: number
  readonly since: ReadonlyMap<string, number>
}

const LOOK_EVERY_MS = 500
/** A list that has lost everything may come back to the same version. */
const READ_AGAIN_MS = 5000

/** What is denied, whoever has denied it, and since when each receiver shuts it out. */
export function watchDenials({ issuer, containment, onChange }: DenialsOptions): Denials {
  const denials = new Map<string, Denial>()
  const receivers = new Map<ReceiverName, Applying>()
  let listed: ReadonlySet<string> = new Set()
  let lookedAt = { version: 0, at: Date.now() }
  let changes = 0

  /** What the list has lost stays for as long as a receiver holds it. */
  function forget(): void {
    for (const name of denials.keys()) {
      const isHeld = [...receivers.values()].some(({ since }) => since.has(name))
      if (!listed.has(name) && !isHeld) denials.delete(name)
    }
  }

  async function read(): Promise<void> {
    const now = { version: containment.version(), at: Date.now() }
    const before = changes
    const entries = (await containment.entries()).filter(isThing)
    // What was read may be older than what was written here meanwhile.
    if (changes !== before) return
    const ours = entries.filter((entry) => entry.issuer === issuer)
    listed = new Set(ours.map(nameOf))
    for (const entry of ours) {
      const known = denials.get(nameOf(entry))
      denials.set(nameOf(entry), { ...denialOf(entry), ...(known && { at: known.at }) })
    }
    lookedAt = now
    forget()
    onChange()
  }

  // Others may deny, too, by the command line. What fails is tried again.
  const timer = setInterval(() => {
    const isOther = containment.version() !== lookedAt.version
    if (isOther || Date.now() - lookedAt.at > READ_AGAIN_MS) read().catch(() => undefined)
  }, LOOK_EVERY_MS)
  timer.unref()

  function appliedAfter(name: string, { at }: Denial): DeniedState['appliedAfter'] {
    const applied = [...receivers].flatMap(([receiver, { begunAt, since }]) => {
      const from = since.get(name)
      return from === undefined ? [] : [[receiver, Math.max(0, from - Math.max(at, begunAt))]]
    })
    return Object.fromEntries(applied)
  }

  return {
    async deny(order) {
      const at = Date.now()
      const asked = entryOf(order, issuer, at / 1000)
      const { entry } = await explaining(() => containment.deny(asked))
      const name = nameOf(asked)
      denials.set(name, { ...denialOf({ ...asked, until: entry.until }), at })
      listed = new Set([...listed, name])
      changes += 1
      onChange()
    },
    async allow(thing) {
      const { kind, value } = checkThing(thing)
      await explaining(() => containment.allow({ issuer, kind, value }))
      const name = nameOf(thing)
      denials.delete(name)
      listed = new Set([...listed].filter((each) => each !== name))
      changes += 1
      onChange()
    },
    list: () =>
      [...denials].map(([name, denial]) => ({
        ...denial,
        appliedAfter: appliedAfter(name, denial),
      })),
    inForce(receiver, at, things) {
      const { begunAt = 0, since: before } = receivers.get(receiver) ?? {}
      const since = new Map(things.map((name) => [name, before?.get(name) ?? at]))
      receivers.set(receiver, { begunAt, since })
      forget()
      onChange()
    },
    begun(receiver) {
      const since = receivers.get(receiver)?.since ?? new Map()
      receivers.set(receiver, { begunAt: Date.now(), since })
    },
    gone(receiver) {
      receivers.delete(receiver)
      forget()
    },
    close: () => clearInterval(timer),
  }
}

function denialOf({ kind, value, reason, at, until }: ThingEntry): Denial {
  const end = until === null ? {} : { until: until * 1000 }
  return { kind, value, reason, at: at * 1000, ...end }
}
