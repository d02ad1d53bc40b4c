import { channel } from 'node:diagnostics_channel'

/** One call of a store: what operators see on the diagnostics channel `express-service-auth:store`. */
export interface StoreEvent {
  /** What the store was asked to do. */
  readonly operation: StoreOperation
  /** Whether the store has answered, whatever its answer was. */
  readonly ok: boolean
  /** Milliseconds until its answer or its failure. */
  readonly durationMs: number
}

/** What a store was asked to do: a function of `SingleUseStore` or of `IdempotencyStore`. */
export type StoreOperation = 'consume' | 'reserve' | 'renew' | 'settle'

const calls = channel('express-service-auth:store')

/** Calls a store; timed, and told to whoever listens. If nobody does, nothing is timed. */
export function callStore<T>(operation: StoreOperation, call: () => Promise<T>): Promise<T> {
  return calls.hasSubscribers ? timed(operation, call) : call()
}

async function timed<T>(operation: StoreOperation, call: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const tell = (ok: boolean): void => {
    const durationMs = performance.now() - startedAt
    calls.publish(Object.freeze({ operation, ok, durationMs } satisfies StoreEvent))
  }
  try {
    const answer = await call()
    tell(true)
    return answer
  } catch (error) {
    tell(false)
    throw error
  }
}
