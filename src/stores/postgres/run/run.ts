import { setTimeout as delay } from 'node:timers/promises'
import type { CoupledStore } from '../../../coupled/store.js'
import type { Place } from '../place.js'
import { recordIds } from '../sql/record-ids.js'
import { attempt } from './attempt.js'
import { createFlights } from './flights.js'
import type { LiveRuns } from './live-runs.js'
import { outcomeOf, unavailable } from './outcome.js'
import { createProbe } from './probe.js'

/**
 * Two locks are not freed as one: who finds only one of them taken looks again, after so many
 * milliseconds each time. A server that has used up its share of the processor can stand still in between.
 */
const LOOK_AGAIN_MS = [10, 40, 100]

/** Makes the `run` of a coupled store. */
export function createRun<Tx>(place: Place<Tx>, live: LiveRuns<Tx>): CoupledStore['run'] {
  const flights = createFlights()
  const probe = createProbe(place)

  return async (request, work) => {
    const ids = recordIds(request.key, request.fingerprint, place.schema)
    const known = await flights.running(ids.id)
    if (known !== undefined) {
      return { outcome: known.requestLock === ids.requestLock ? 'running' : 'mismatch' }
    }
    const flight = flights.takeOff(ids.id, ids.requestLock)
    try {
      let checksConnection: boolean
      try {
        checksConnection = await probe.read()
      } catch (error) {
        return unavailable({ error })
      }
      const subject = { request, ids, work, live, checksConnection, onRun: flight.run }
      let attempted = await attempt(place, subject)
      for (const pauseMs of LOOK_AGAIN_MS) {
        if (attempted.life.at !== 'contended') break
        await delay(pauseMs, undefined, { ref: false })
        attempted = await attempt(place, subject)
      }
      return await outcomeOf(place, subject, attempted)
    } finally {
      flight.land()
    }
  }
}
