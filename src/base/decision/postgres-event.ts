import { openChannel, publish } from './observers.js'

/** Event of a Postgres store, on the diagnostics channel `express-service-auth:postgres`. */
export type PostgresEvent =
  /** A sweep has deleted expired rows; `durationMs` is how long it took. */
  | { readonly type: 'swept'; readonly deleted: number; readonly durationMs: number }
  /** Expired rows could not be deleted; the next sweep tries again. */
  | { readonly type: 'sweep_failed'; readonly sqlState?: string }

const postgres = openChannel('postgres')

/** Publishes an event. It is computed only if there are subscribers. */
export function announcePostgres(event: () => PostgresEvent): void {
  publish(postgres, event)
}
