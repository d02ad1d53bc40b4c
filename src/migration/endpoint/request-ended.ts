import type { MigrationRefusal, MigrationUndecided } from '../../base/decision/migration-event.js'

/** Ends a request without an account. It has no `cause`, which could contain data of the request. */
export class RequestEnded extends Error {
  override readonly name = 'RequestEnded'
  readonly reason: MigrationRefusal | MigrationUndecided
  readonly details: Details

  constructor(reason: RequestEnded['reason'], details: Details = {}) {
    super(reason)
    this.reason = reason
    this.details = details
  }
}

interface Details {
  /** Paths and codes of a record, or codes of the core or of its client; never values. */
  readonly faults?: readonly string[]
  /** For a 429. */
  readonly retryAfterSeconds?: number
}

/** Maximum number of faults in a decision. */
const MAX_FAULTS = 20

interface Fault {
  readonly field: string
  readonly code: string
}

/** Ends a request whose record is invalid. Tells paths and codes, without messages or values. */
export const recordInvalid = (faults: readonly Fault[]): RequestEnded =>
  new RequestEnded('record_invalid', {
    faults: faults
      .slice(0, MAX_FAULTS)
      .map(({ field, code }) => (field === '' ? code : `${field}: ${code}`)),
  })
