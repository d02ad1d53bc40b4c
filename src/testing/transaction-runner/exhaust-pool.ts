import { setTimeout as delay } from 'node:timers/promises'
import { LIMITS, type RunnerAtTable } from './runner-at-table.js'

/** More connections than the pool of an application has. */
const MAX_HELD = 100
export const SHORT_ACQUIRE_MS = 100
/** The time that opening a connection may take; a pool that has none after it is exhausted. */
const OPENING_MS = 2000
/** The delay that a busy machine may cause. */
export const SLACK_MS = 2000

/** How long a late call could still run by mistake, once there are connections again. */
export const LATE_MS = 250

/** Holds transactions until the pool has no connection left; returns a function that ends them. */
export async function exhaust({ runner }: RunnerAtTable): Promise<() => Promise<void>> {
  const held: Promise<void>[] = []
  const { promise: released, resolve: release } = withResolvers()
  let isExhausted = false
  while (!isExhausted && held.length < MAX_HELD) {
    const { promise: begun, resolve: begin } = withResolvers()
    const holding = runner.transaction(
      async (tx) => {
        await runner.query(tx, 'select 1 as one', [])
        begin()
        await released
      },
      { ...LIMITS, acquireMs: OPENING_MS },
    )
    const ended = holding.catch(() => {
      isExhausted = true
    })
    held.push(ended)
    // If the runner ignores `acquireMs`, the case detects it.
    const waited = delay(OPENING_MS + SLACK_MS, true, { ref: false })
    if ((await Promise.race([begun, ended, waited])) === true) isExhausted = true
  }
  return async () => {
    release()
    await Promise.all(held)
  }
}

function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {}
  const promise = new Promise<void>((resolved) => {
    resolve = resolved
  })
  return { promise, resolve }
}
