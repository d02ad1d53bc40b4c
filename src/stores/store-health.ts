/** Why a store call failed: no answer in time, no connection, an error of the server, a closed store. */
export type StoreFault = 'timeout' | 'network' | 'server' | 'closed'

/** The state of a store, from memory. JSON-serialisable. */
export interface StoreHealth {
  /** The result of the last call; `unused` before the first. */
  readonly state: 'unused' | 'up' | 'down'
  /** The reason of the last failure, also after later calls have succeeded. */
  readonly lastError?: StoreFault
  /** The time of that failure, in seconds since the epoch. */
  readonly lastErrorAt?: number
}

export interface HealthWatch {
  read(): StoreHealth
  up(): void
  down(fault: StoreFault): void
}

/** Creates the health of a store. After `closed` it no longer changes. */
export function watchHealth(): HealthWatch {
  let state: StoreHealth['state'] = 'unused'
  let lastError: StoreFault | undefined
  let lastErrorAt = 0

  return {
    read: () => ({ state, ...(lastError !== undefined && { lastError, lastErrorAt }) }),
    up() {
      if (lastError !== 'closed') state = 'up'
    },
    down(fault) {
      if (lastError === 'closed') return
      state = 'down'
      lastError = fault
      lastErrorAt = Math.floor(Date.now() / 1000)
    },
  }
}
