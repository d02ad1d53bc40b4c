import type { Database, Query } from './database.js'
import type { ReadContext } from './imported-user.js'

/** The parts that the operations of the bulk import share. */
export interface BulkParts {
  readonly database: Database
  readonly contextFor: (query: Query) => Promise<ReadContext>
  readonly clock: () => number
  /** Whether the answer to staging lists the staged users; a core before 10.1.1 does not list them. */
  readonly listsStagedUsers: boolean
  readonly largestBodyBytes?: number | undefined
}
