import type { CoupledStore } from '../../../idempotency/coupled/coupled-store.js'
import { recordIds } from '../sql/record-ids.js'
import type { Place } from '../store-context.js'
import { createProbe } from './connection-check.js'
import { createFlights } from './in-flight-runs.js'
import type { LiveRuns } from './live-runs.js'
import { outcomeOf, unavailable } from './run-outcome.js'
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
