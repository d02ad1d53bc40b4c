/** A key that is being looked up, or run, in this process. */
export interface Flight {
  readonly requestLock: string
  /** Resolves when it is known whether its handler runs. */
  readonly opened: Promise<void>
  isRunning: boolean
}

export interface Flights {
  /** The flight of the key, once its lookup has ended; `undefined` where no handler of it runs. */
  running(id: string): Promise<Flight | undefined>
  /** Takes off, unless another flight of the key is under way. */
  takeOff(id: string, requestLock: string): TakenOff
}

export interface TakenOff {
  /** The handler runs: whoever asks for the key need not ask the database. */
  run(): void
  /** Nothing is under way any more. */
  land(): void
}

/** What is under way in this process, so that equal requests spare the database. */
export function createFlights(): Flights {
  const flights = new Map<string, Flight>()

  return {
    async running(id) {
      const flight = flights.get(id)
      if (flight === undefined) return undefined
      await flight.opened
      return flight.isRunning ? flight : undefined
    },
    takeOff(id, requestLock) {
      let open = (): void => {}
      const opened = new Promise<void>((resolve) => {
        open = resolve
      })
      const flight: Flight = { requestLock, opened, isRunning: false }
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
