import { randomUUID } from 'node:crypto'
import type { CoupledStore } from '../../../idempotency/coupled/coupled-store.js'
import { recordIds } from '../sql/record-ids.js'
import { sqlStateOf } from '../sql-state.js'
import { query, type StoreContext } from '../store-context.js'
import type { LiveRuns } from './live-runs.js'
import { classifyFailure } from './resolve-commit.js'
import { determineOutcome, unavailable } from './run-outcome.js'
import { attemptTransaction } from './transaction-attempt.js'

/** Creates the `run` function of a coupled store. */
export function createRun<Tx>(
  store: StoreContext<Tx>,
  liveRuns: LiveRuns<Tx>,
): CoupledStore['run'] {
  const inFlight = createInFlightRuns()
  const hasConnectionCheck = askOnceForConnectionCheck(store)

  return async (request, work) => {
    // Without a key, the ids are random, so that no other request has them, and no record is written.
    const ids = recordIds(request.recordId ?? randomUUID(), request.fingerprint, store.schema)
    if (await inFlight.isRunning(ids.id)) return { outcome: 'running' }
    const { markRunning, finish } = inFlight.start(ids.id)
    try {
      let checksConnection: boolean
      try {
        checksConnection = await hasConnectionCheck()
      } catch (error) {
        return unavailable({ type: 'failed', error })
      }
      const input = { request, ids, work, liveRuns, checksConnection, onHandlerStart: markRunning }
      const result = await attemptTransaction(store, input)
      return await determineOutcome(store, input, result)
    } finally {
      finish()
    }
  }
}

/**
 * Returns a function that resolves to whether the server can check for disconnected clients. It queries the
 * server until there is an answer, and rejects while the server cannot be reached. The query runs outside a
 * transaction, because its failure would abort the transaction.
 */
function askOnceForConnectionCheck<Tx>(store: StoreContext<Tx>): () => Promise<boolean> {
  let answer: Promise<boolean> | undefined

  async function send(): Promise<boolean> {
    try {
      await query(store, store.statements.checkConnection())
      return true
    } catch (error) {
      if (classifyFailure('record', sqlStateOf(error)) === 'refused') return false
      answer = undefined
      throw error
    }
  }

  return () => {
    answer ??= send()
    return answer
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
