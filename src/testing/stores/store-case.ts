import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * One rule for a store, or for another subject of the cases. `run` rejects if the rule is broken,
 * and says what was expected.
 */
export interface StoreCase {
  /** The rule, as a sentence. */
  readonly name: string
  /** Rejects with an `AssertionError` if the rule is broken. */
  run(): Promise<void>
}

/** Returns the store under test, a new one or always the same. The test closes it. */
export type StoreOpener<Store> = () => Store | Promise<Store>

/** Rules by name. They can share one store, because no two use the same key. */
export type StoreRules<Store> = Readonly<Record<string, (store: Store) => Promise<void>>>

export const casesOf = <Store>(
  rules: StoreRules<Store>,
  open: StoreOpener<Store>,
): readonly StoreCase[] => {
  if (typeof open !== 'function') {
    throw new TypeError('the cases must be given a function that returns what they are run on')
  }
  return Object.entries(rules).map(([name, rule]) => ({
    name,
    async run() {
      await rule(await open())
    },
  }))
}

const POLL_MS = 10
/** Less than the five-second timeout of test runners. */
const PATIENCE_MS = 4000

/** Polls for an effect of the store's own clock, such as the end of a lease. */
export async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, `timed out waiting for: ${what}`)
    await delay(POLL_MS)
  }
}
