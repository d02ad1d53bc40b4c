import type { Caller } from './caller.js'

export const pickOne = <T>(choices: readonly T[]): T =>
  choices[Math.floor(Math.random() * choices.length)] as T

const LOOK_MS = 200

/** Does it again and again, about so often; resolves to how many times. */
export async function disturb(
  isOver: () => boolean,
  everyMs: number,
  work: () => Promise<void>,
): Promise<number> {
  let count = 0
  for (;;) {
    const next = performance.now() + everyMs * (0.5 + Math.random())
    while (performance.now() < next && !isOver()) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    if (isOver()) return count
    await work()
    count += 1
  }
}

interface Writing {
  /** Its keys begin with it. */
  readonly name: string
  readonly path: string
  isOver(): boolean
  /** Takes the keys whose write is known to have happened. */
  readonly written: string[]
}

/** Writes one key after the other; every tenth twice. */
export async function keepWriting(
  caller: Caller,
  { name, path, isOver, written }: Writing,
): Promise<void> {
  for (let number = 0; !isOver(); number += 1) {
    const key = `${name}-${number}`
    const order = { key, item: `item of ${key}`, path }
    const outcome = await caller.write(order)
    if (outcome !== 'unknown') written.push(key)
    if (Math.random() < 0.1) await caller.write(order)
  }
}
