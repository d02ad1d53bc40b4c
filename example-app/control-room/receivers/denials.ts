import type { DenylistEntry } from 'express-service-auth'
import type { DeniedState, DeniedThing, DenyOrder, ReceiverName } from '../protocol.js'
import { explaining } from './explaining.js'
import { thingName } from './messages.js'
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

/** Something that is denied. */
interface Denial extends DeniedThing {
  readonly reason: string
  readonly at: number
  readonly until?: number
}

/** What a receiver shuts out, each thing since when. */
interface Applying {
  readonly begunAt: number
  since: ReadonlyMap<string, number>
}

const LOOK_EVERY_MS = 500

/** What is denied, whoever has denied it, and since when each receiver shuts it out. */
export function watchDenials({ issuer, containment, onChange }: DenialsOptions): Denials {
  const denials = new Map<string, Denial>()
  const receivers = new Map<ReceiverName, Applying>()
  let listed: ReadonlySet<string> = new Set()
  let lookedAt = 0

  /** What the list has lost stays for as long as a receiver holds it. */
  function forget(): void {
    for (const [name] of denials) {
      const isHeld = [...receivers.values()].some(({ since }) => since.has(name))
      if (!listed.has(name) && !isHeld) denials.delete(name)
    }
  }

  async function read(): Promise<void> {
    const version = containment.version()
    const entries = (await containment.entries())
      .filter(isThing)
      .filter((it) => it.issuer === issuer)
    listed = new Set(entries.map(nameOf))
    for (const entry of entries) {
      const known = denials.get(nameOf(entry))
      denials.set(nameOf(entry), { ...denialOf(entry), ...(known && { at: known.at }) })
    }
    lookedAt = version
    forget()
    onChange()
  }

  // Another command may deny, too; what fails is tried again.
  const timer = setInterval(() => {
    if (containment.version() !== lookedAt) read().catch(() => undefined)
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
    async deny({ kind, value, reason, seconds }) {
      const now = Date.now()
      const at = now / 1000
      const until = seconds === undefined ? null : at + seconds
      const entry = { issuer, kind, value, reason, by: 'control room', at, until }
      await explaining(() => containment.deny(entry))
      denials.set(nameOf(entry), { ...denialOf(entry), at: now })
      listed = new Set([...listed, nameOf(entry)])
      onChange()
    },
    async allow({ kind, value }) {
      await explaining(() => containment.allow({ issuer, kind, value }))
      const name = thingName(kind, value)
      denials.delete(name)
      listed = new Set([...listed].filter((each) => each !== name))
      onChange()
    },
    list: () =>
      [...denials].map(([name, denial]) => ({
        ...denial,
        appliedAfter: appliedAfter(name, denial),
      })),
    inForce(receiver, at, things) {
      const applying = receivers.get(receiver) ?? { begunAt: 0, since: new Map() }
      const since = new Map(things.map((name) => [name, applying.since.get(name) ?? at]))
      receivers.set(receiver, { ...applying, since })
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

type ThingEntry = DenylistEntry & DeniedThing

const isThing = (entry: DenylistEntry): entry is ThingEntry => entry.kind !== 'issued-before'

const nameOf = ({ kind, value }: DeniedThing): string => thingName(kind, value)

function denialOf({ kind, value, reason, at, until }: ThingEntry): Denial {
  const end = until === null ? {} : { until: until * 1000 }
  return { kind, value, reason, at: at * 1000, ...end }
}
