import type { DeniedState, ReceiverName } from '../protocol.js'

/** What each receiver shuts out, and since when. */
export interface Applied {
  /** What a receiver shuts out from a moment on. */
  inForce(receiver: ReceiverName, at: number, things: readonly string[]): void
  /** A receiver serves again: what it applies, it applies since then at the earliest. */
  begun(receiver: ReceiverName): void
  gone(receiver: ReceiverName): void
  /** Whether any receiver shuts it out. */
  isHeld(thing: string): boolean
  /** How long it took each, from the moment at which it was denied. */
  after(thing: string, deniedAt: number): DeniedState['appliedAfter']
}

interface Applying {
  readonly begunAt: number
  readonly since: ReadonlyMap<string, number>
}

const NOTHING: Applying = { begunAt: 0, since: new Map() }

export function createApplied(): Applied {
  const receivers = new Map<ReceiverName, Applying>()
  const of = (receiver: ReceiverName): Applying => receivers.get(receiver) ?? NOTHING

  return {
    inForce(receiver, at, things) {
      const { begunAt, since } = of(receiver)
      const next = new Map(things.map((thing) => [thing, since.get(thing) ?? at]))
      receivers.set(receiver, { begunAt, since: next })
    },
    begun(receiver) {
      receivers.set(receiver, { ...of(receiver), begunAt: Date.now() })
    },
    gone: (receiver) => void receivers.delete(receiver),
    isHeld: (thing) => [...receivers.values()].some(({ since }) => since.has(thing)),
    after(thing, deniedAt) {
      const applied = [...receivers].flatMap(([receiver, { begunAt, since }]) => {
        const from = since.get(thing)
        return from === undefined
          ? []
          : [[receiver, Math.max(0, from - Math.max(deniedAt, begunAt))]]
      })
      return Object.fromEntries(applied)
    },
  }
}
