import { setTimeout as delay } from 'node:timers/promises'
import { withResolvers } from '../support/with-resolvers.js'
import type { Caller } from './caller.js'

export const pickOne = <T>(choices: readonly T[]): T =>
  choices[Math.floor(Math.random() * choices.length)] as T

export const between = (least: number, most: number): number =>
  least + Math.random() * (most - least)

/** Lets work through, except while it is closed. */
export interface Gate {
  pass(work: () => Promise<unknown>): Promise<void>
  /** Resolves when all work that has passed is done. */
  close(): Promise<void>
  open(): void
}

export function createGate(): Gate {
  const inside = new Set<Promise<unknown>>()
  let opened = Promise.resolve()
  let open = (): void => {}
  return {
    async pass(work) {
      for (let seen: unknown; seen !== opened; await opened) seen = opened
      const done = work()
      inside.add(done)
      await done.finally(() => inside.delete(done))
    },
    async close() {
      const { promise, resolve } = withResolvers<void>()
      opened = promise
      open = resolve
      await Promise.allSettled(inside)
    },
    open: () => open(),
  }
}

/** Faults by name. Each resolves when it is over. */
export type Faults = Readonly<Record<string, () => Promise<unknown>>>

interface Commotion {
  readonly gate: Gate
  isOver(): boolean
}

/** Does one of the faults again and again, about so often; resolves to how often each was done. */
export async function disturb(
  faults: Faults,
  { gate, isOver, everyMs }: Commotion & { readonly everyMs: number },
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {}
  for (;;) {
    await delay(everyMs * between(0.5, 1.5))
    if (isOver()) return counts
    const [name, work] = pickOne(Object.entries(faults))
    await gate.pass(work)
    counts[name] = (counts[name] ?? 0) + 1
  }
}

const REPEATED = 0.1
/** Much less than what records are kept for. */
const REPEATED_WITHIN_MS = 120_000
const REMEMBERED = 1000

/** Writes one key after the other; a tenth of the writes are earlier ones again. */
export async function keepWriting(
  caller: Caller,
  { gate, isOver, name }: Commotion & { readonly name: string },
): Promise<void> {
  const earlier: { readonly key: string; readonly at: number }[] = []
  for (let number = 0; !isOver(); ) {
    const oldest = performance.now() - REPEATED_WITHIN_MS
    while (earlier[0] && (earlier[0].at < oldest || earlier.length > REMEMBERED)) earlier.shift()
    const isRepeated = earlier.length > 0 && Math.random() < REPEATED
    const key = isRepeated ? pickOne(earlier).key : `${name}-${number++}`
    await gate.pass(() => caller.write(key))
    if (!isRepeated) earlier.push({ key, at: performance.now() })
  }
}
