/** A key that is being looked up, or run, in this process. */
interface Flight {
  /** Resolves when it is known whether its handler runs. */
  readonly opened: Promise<void>
  isRunning: boolean
}

export interface Flights {
  /** Whether a handler of the key runs, once its lookup has ended. */
  isRunning(id: string): Promise<boolean>
  /** Takes off, unless another flight of the key is under way. */
  takeOff(id: string): TakenOff
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
