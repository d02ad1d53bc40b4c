import type { DeniedState, DeniedThing, DenyOrder } from '../protocol.js'
import { type Applied, createApplied } from './applied.js'
import { checkThing, entryOf, isThing, nameOf, type ThingEntry } from './denied-thing.js'
import { explaining } from './explaining.js'
import type { Containment } from './open-shared.js'

export interface Denials extends Pick<Applied, 'inForce' | 'begun' | 'gone'> {
  deny(order: DenyOrder): Promise<void>
  allow(thing: DeniedThing): Promise<void>
  list(): readonly DeniedState[]
  close(): void
}

export interface DenialsOptions {
  readonly issuer: string
  readonly containment: Containment
  onChange(): void
}

type Denial = Omit<DeniedState, 'appliedAfter'>

const LOOK_EVERY_MS = 500
/** A list that has lost everything may come back to the same version. */
const READ_AGAIN_MS = 5000

/** What is denied, whoever has denied it, and since when each receiver shuts it out. */
export function watchDenials({ issuer, containment, onChange }: DenialsOptions): Denials {
  const denials = new Map<string, Denial>()
  const listed = new Set<string>()
  const applied = createApplied()
  let lookedAt = { version: 0, at: Date.now() }
  let changes = 0

  function changed(): void {
    for (const name of denials.keys()) {
      // What the list has lost stays for as long as a receiver holds it.
      if (!listed.has(name) && !applied.isHeld(name)) denials.delete(name)
    }
    onChange()
  }

  function put(entry: ThingEntry, at: number): void {
    listed.add(nameOf(entry))
    denials.set(nameOf(entry), { ...denialOf(entry), at })
  }

  async function read(): Promise<void> {
    const now = { version: containment.version(), at: Date.now() }
    const before = changes
    const entries = (await containment.entries()).filter(isThing)
    // What was read may be older than what was written here meanwhile.
    if (changes !== before) return
    lookedAt = now
    listed.clear()
    for (const entry of entries) {
      const at = denials.get(nameOf(entry))?.at ?? entry.at * 1000
      if (entry.issuer === issuer) put(entry, at)
    }
    changed()
  }

  // Others may deny, too, by the command line. What fails is tried again.
  const timer = setInterval(() => {
    const isOther = containment.version() !== lookedAt.version
    if (isOther || Date.now() - lookedAt.at > READ_AGAIN_MS) read().catch(() => undefined)
  }, LOOK_EVERY_MS)
  timer.unref()

  return {
    async deny(order) {
      const at = Date.now()
      const asked = entryOf(order, issuer, at / 1000)
      const { entry } = await explaining(() => containment.deny(asked))
      changes += 1
      put({ ...asked, until: entry.until }, at)
      changed()
    },
    async allow(thing) {
      const { kind, value } = checkThing(thing)
      await explaining(() => containment.allow({ issuer, kind, value }))
      changes += 1
      listed.delete(nameOf(thing))
      denials.delete(nameOf(thing))
      changed()
    },
    list: () =>
      [...denials].map(([name, denial]) => ({
        ...denial,
        appliedAfter: applied.after(name, denial.at),
      })),
    inForce(receiver, at, things) {
      applied.inForce(receiver, at, things)
      changed()
    },
    begun: applied.begun,
    gone(receiver) {
      applied.gone(receiver)
      changed()
    },
    close: () => clearInterval(timer),
  }
}

function denialOf({ kind, value, reason, at, until }: ThingEntry): Denial {
  const end = until === null ? {} : { until: until * 1000 }
  return { kind, value, reason, at: at * 1000, ...end }
}
