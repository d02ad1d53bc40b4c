import type { Database, Query } from './database.js'
import type { ReadContext } from './imported-user.js'

/** What the operations of the bulk import work with. */
export interface BulkParts {
  readonly database: Database
  readonly contextFor: (query: Query) => Promise<ReadContext>
  readonly clock: () => number
  /** Whether staging tells what it has staged; a core before 10.1.1 does not. */
  readonly tellsStagedUsers: boolean
  readonly largestBodyBytes?: number | undefined
}
