import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'

/** One rule that a store must keep. `run` rejects, saying what was expected, when it does not. */
export interface StoreCase {
  readonly name: string
  run(): Promise<void>
}

/** Gives the store under test, a new one or always the same; whoever gives it closes it. */
export type StoreOpener<Store> = () => Store | Promise<Store>

/** Named rules, each with a store of its own or a share of one: no two use the same key. */
export type StoreRules<Store> = Readonly<Record<string, (store: Store) => Promise<void>>>

export const casesOf = <Store>(
  rules: StoreRules<Store>,
  open: StoreOpener<Store>,
): readonly StoreCase[] => {
  if (typeof open !== 'function') {
    throw new TypeError('the store cases must be given a function that returns the store')
  }
  return Object.entries(rules).map(([name, rule]) => ({
    name,
    async run() {
      await rule(await open())
    },
  }))
}

const POLL_MS = 10
/** Less than the five seconds after which test runners give a case up. */
const PATIENCE_MS = 4000

/** Asks until the answer is there, for what a store's own clock brings about. */
export async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, `in vain waited for this: ${what}`)
    await delay(POLL_MS)
  }
}
