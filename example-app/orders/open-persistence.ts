import type { LiveDenylist } from 'express-service-auth'
import { type OpenPostgres, openPostgres } from './open-postgres.js'
import { openStore } from './open-store.js'
import { coupledPersistence, leasedPersistence, type Persistence } from './persistence.js'

export interface Addresses {
  readonly databaseUrl: string | undefined
  /** Counts without `databaseUrl`. */
  readonly redisUrl: string | undefined
}

export interface Listeners {
  /** What may cost written orders. */
  readonly warn: (warning: string) => void
  /** Called if Redis is unreachable; without it, that is an error. */
  readonly goOnWithout?: (complaint: string) => void
}

export interface OpenPersistence {
  readonly persistence: Persistence
  readonly denylist: LiveDenylist | undefined
  readonly name: string
  /** What only an app on Postgres has. */
  readonly postgres: OpenPostgres | undefined
  close(): Promise<void>
}

/**
 * Opens Postgres, or Redis, or the memory of the process, by what has an address.
 * @throws {StartError} as `openPostgres` and `openStore`
 */
export async function openPersistence(
  { databaseUrl, redisUrl }: Addresses,
  { warn, goOnWithout }: Listeners,
): Promise<OpenPersistence> {
  if (databaseUrl !== undefined) {
    const postgres = await openPostgres(databaseUrl, warn)
    const persistence = coupledPersistence(postgres)
    return { persistence, denylist: undefined, name: 'Postgres', postgres, close: postgres.close }
  }
  const { store, denylist, name, close } = await openStore(redisUrl, { warn, goOnWithout })
  const persistence = leasedPersistence(store)
  return { persistence, denylist, name, postgres: undefined, close: async () => close() }
}
