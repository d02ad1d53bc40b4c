import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 20
const DEADLINE_MS = 40_000

/** Whether it resolves. */
export const succeeds = (work: PromiseLike<unknown>): Promise<boolean> =>
  Promise.resolve(work).then(
    () => true,
    () => false,
  )

/** Resolves once the condition holds; rejects with `what` in the message after `DEADLINE_MS`. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`Timed out waiting for: ${what}`)
    await delay(POLL_MS)
  }
}
