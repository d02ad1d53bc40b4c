import type { CoupledStore } from '../../../idempotency/coupled/coupled-store.js'
import { recordIds } from '../sql/record-ids.js'
import { sqlStateOf } from '../sql-state.js'
import { ask, type Place } from '../store-context.js'
import type { LiveRuns } from './live-runs.js'
import { outcomeOf, unavailable } from './run-outcome.js'
import { failureAt } from './statement-failure.js'
import { attempt } from './transaction-attempt.js'

/** Creates the `run` function of a coupled store. */
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
   * Whether the server can check for disconnected clients. Sends one query, outside a transaction,
   * which an error would abort. Rejects while the server cannot be reached.
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

/** A key that this process is looking up or running. */
interface Flight {
  /** Resolves once it is known whether the handler runs. */
  readonly opened: Promise<void>
  isRunning: boolean
}

interface Flights {
  /** Whether a handler of the key is running, after a lookup in progress has ended. */
  isRunning(id: string): Promise<boolean>
  /** Registers a flight of the key, unless another one is registered. */
  takeOff(id: string): TakenOff
}

interface TakenOff {
  /** Marks the handler as running: further requests with the key need no query. */
  run(): void
  /** Ends the flight. */
  land(): void
}

/** Tracks the lookups and runs of this process, so that equal requests need no query. */
export function createFlights(): Flights {
  const flights = new Map<string, Flight>()

  return {
    async isRunning(id) {
      const flight = flights.get(id)
      await flight?.opened
      return flight?.isRunning === true
    },
    takeOff(id) {
      let open = (): void => {}
      const opened = new Promise<void>((resolve) => {
        open = resolve
      })
      const flight: Flight = { opened, isRunning: false }
      if (!flights.has(id)) flights.set(id, flight)
      return {
        run() {
          flight.isRunning = true
          if (!flights.has(id)) flights.set(id, flight)
          open()
        },
        land() {
          flight.isRunning = false
          if (flights.get(id) === flight) flights.delete(id)
          open()
        },
      }
    },
  }
}
