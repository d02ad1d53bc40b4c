import type { CoupledStore } from '../../../idempotency/coupled/coupled-store.js'
import { recordIds } from '../sql/record-ids.js'
import { sqlStateOf } from '../sql-state.js'
import { ask, type Place } from '../store-context.js'
import { createFlights } from './in-flight-runs.js'
import type { LiveRuns } from './live-runs.js'
import { outcomeOf, unavailable } from './run-outcome.js'
import { failureAt } from './statement-failure.js'
import { attempt } from './transaction-attempt.js'

/** Makes the `run` of a coupled store. */
export function createRun<Tx>(place: Place<Tx>, live: LiveRuns<Tx>): CoupledStore['run'] {
  const flights = createFlights()
  const probe = createProbe(place)

  return async (request, work) => {
    const ids = recordIds(request.key, request.fingerprint, place.schema)
    if (await flights.isRunning(ids.id)) return { outcome: 'running' }
    const flight = flights.takeOff(ids.id)
    try {
      let checksConnection: boolean
      try {
        checksConnection = await probe.read()
      } catch (error) {
        return unavailable({ error })
      }
      const subject = { request, ids, work, live, checksConnection, onRun: flight.run }
      return await outcomeOf(place, subject, await attempt(place, subject))
    } finally {
      flight.land()
    }
  }
}

interface Probe {
  /**
   * Whether the server can look whether a client is still there. Asked once, outside of any run: in a
   * transaction, a refusal would end it. Rejects while the server is out of reach.
   */
  read(): Promise<boolean>
}

function createProbe<Tx>(place: Place<Tx>): Probe {
  let asked: Promise<boolean> | undefined

  async function probe(): Promise<boolean> {
    try {
      await ask(place, place.statements.probe())
      return true
    } catch (error) {
      if (failureAt('record', sqlStateOf(error)) === 'refused') return false
      asked = undefined
      throw error
    }
  }

  return {
    read() {
      asked ??= probe()
      return asked
    },
  }
}
