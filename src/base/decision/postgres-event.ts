import { openChannel, publish } from './observers.js'

/** Event of a Postgres store, on the diagnostics channel `express-service-auth:postgres`. */
export type PostgresEvent =
  /** Rows that had expired are gone; `durationMs` is what that took. */
  | { readonly type: 'swept'; readonly deleted: number; readonly durationMs: number }
  /** They could not be deleted; the next sweep tries again. */
  | { readonly type: 'sweep_failed'; readonly sqlState?: string }

const postgres = openChannel('postgres')

/** Publishes an event. It is computed only if there are subscribers. */
export function announcePostgres(event: () => PostgresEvent): void {
  publish(postgres, event)
}
