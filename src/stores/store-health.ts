/** Why a store has failed: no answer in time, no connection, an error that the server gave, closed. */
export type StoreFault = 'timeout' | 'network' | 'server' | 'closed'

/** What a store knows of itself without asking. JSON-serialisable. */
export interface StoreHealth {
  /** By how the last call ended; `unused` before the first. */
  readonly state: 'unused' | 'up' | 'down'
  /** Why a call failed last, kept also when later ones succeed. */
  readonly lastError?: StoreFault
  /** When that was, in seconds since the epoch. */
  readonly lastErrorAt?: number
}

/** Keeps the health of a store. */
export interface HealthWatch {
  read(): StoreHealth
  up(): void
  down(fault: StoreFault): void
}

/** A store that is closed stays so. */
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
