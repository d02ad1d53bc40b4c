import { openChannel, publish } from './observers.js'

/** One call of a store, as published on the diagnostics channel `express-service-auth:store`. */
export interface StoreEvent {
  /** The function that was called. */
  readonly operation: StoreOperation
  /** Whether the call resolved, to whatever value; `false` if it rejected. */
  readonly ok: boolean
  /** Milliseconds until the call resolved or rejected. */
  readonly durationMs: number
}

/** A function of `SingleUseStore` or `IdempotencyStore`. */
export type StoreOperation = 'consume' | 'reserve' | 'renew' | 'settle'

const calls = openChannel('store')

/** Calls a store, and publishes the call with its duration if there are subscribers. */
export function callStore<T>(operation: StoreOperation, call: () => Promise<T>): Promise<T> {
  return calls.hasSubscribers ? timed(operation, call) : call()
}

async function timed<T>(operation: StoreOperation, call: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const emit = (ok: boolean): void => {
    const durationMs = performance.now() - startedAt
    publish<StoreEvent>(calls, () => ({ operation, ok, durationMs }))
  }
  try {
    const answer = await call()
    emit(true)
    return answer
  } catch (error) {
    emit(false)
    throw error
  }
}
