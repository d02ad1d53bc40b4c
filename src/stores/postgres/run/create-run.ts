import { randomUUID } from 'node:crypto'
import type { CoupledStore } from '../../../idempotency/coupled/coupled-store.js'
import { recordIds } from '../sql/record-ids.js'
import type { StoreContext } from '../store-context.js'
import type { LiveRuns } from './live-runs.js'
import { determineOutcome } from './run-outcome.js'
import { attemptTransaction } from './transaction-attempt.js'

/** Creates the `run` function of a coupled store. */
export function createRun<Tx>(
  store: StoreContext<Tx>,
  liveRuns: LiveRuns<Tx>,
): CoupledStore['run'] {
  const inFlight = createInFlightRuns()

  return async (request, work) => {
    // Without a key, the ids are random, so that no other request has them, and no record is written.
    const ids = recordIds(request.recordId ?? randomUUID(), request.fingerprint, store.schema)
    if (await inFlight.isRunning(ids.id)) return { outcome: 'running' }
    const { markRunning, finish } = inFlight.start(ids.id)
    try {
      const input = { request, ids, work, liveRuns, onHandlerStart: markRunning }
      const result = await attemptTransaction(store, input)
      return await determineOutcome(store, input, result)
    } finally {
      finish()
    }
  }
}

/** A key that this process is looking up or running. */
interface InFlightRun {
  /** Resolves once it is known whether the handler runs. */
  readonly begun: Promise<void>
  isRunning: boolean
}

/** Tracks the keys that this process looks up or runs, so that requests with the same key need no query. */
export function createInFlightRuns() {
  const runs = new Map<string, InFlightRun>()

  return {
    /** Whether a handler of the key is running, after a lookup in progress has ended. */
    async isRunning(id: string): Promise<boolean> {
      const inFlight = runs.get(id)
      await inFlight?.begun
      return inFlight?.isRunning === true
    },
    /** Registers a run of the key, unless another one is registered. */
    start(id: string) {
      let resolve = (): void => {}
      const begun = new Promise<void>((resolveBegun) => {
        resolve = resolveBegun
      })
      const inFlight: InFlightRun = { begun, isRunning: false }
      if (!runs.has(id)) runs.set(id, inFlight)
      return {
        /** Marks the handler as running: further requests with the key need no query. */
        markRunning(): void {
          inFlight.isRunning = true
          if (!runs.has(id)) runs.set(id, inFlight)
          resolve()
        },
        finish(): void {
          inFlight.isRunning = false
          if (runs.get(id) === inFlight) runs.delete(id)
          resolve()
        },
      }
    },
  }
}
