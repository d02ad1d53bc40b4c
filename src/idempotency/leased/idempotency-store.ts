import type { RecordFinding } from '../run.js'

/** A run of a handler under a reserved key, as its store knows it. */
export interface Run {
  /** The digest of the key and its scope. */
  readonly recordId: string
  /** Unique to the run. */
  readonly owner: string
  /** Grows with every run of the key. */
  readonly fence: number
  /** The digest of what must be identical in a retry. */
  readonly fingerprint: string
  /** How long the run is trusted to be alive without renewing. */
  readonly leaseMs: number
  /** How long the record is stored after the lease, or after the end of the run. */
  readonly retentionMs: number
}

/** The reservation that a store makes before a handler runs. */
export interface ReservationRequest extends Omit<Run, 'fence'> {
  /** Whether the key may be taken over from a run that ended without a result. */
  readonly rerunAbandoned: boolean
}

/** The outcome of a reservation; all but the first say why the handler must not run. */
export type Reservation =
  /** The handler may run; `fence` grows with every run of the key. */
  | { readonly outcome: 'reserved'; readonly fence: number }
  /** Another run is in progress, whose lease ends in `leaseLeftMs`. */
  | { readonly outcome: 'running'; readonly leaseLeftMs: number }
  /** A run's lease has ended and it has left no result. */
  | { readonly outcome: 'abandoned' }
  | RecordFinding

/** How a run ends. */
export type Ending =
  /** It has a result, which is stored for `retentionMs`. */
  | { readonly type: 'finished'; readonly result: Uint8Array }
  /** Its response is not stored, and its first byte is about to be sent. The record is stored for `retentionMs`. */
  | { readonly type: 'not_stored' }
  /** It has no result: its lease ends now, and the record is stored for `retentionMs`. */
  | { readonly type: 'abandoned' }
  /** Nothing has happened: the key is free again. */
  | { readonly type: 'released' }

/**
 * Where idempotency keys are reserved, shared by all instances of a receiver. Every function is one
 * atomic step, and rejects if the outcome is unknown. Repeating a call of the same owner
 * has no further effect, and returns the same answer.
 */
export interface IdempotencyStore {
  /**
   * Reserves the key, or resolves with why it cannot. Fences also grow after a record was deleted.
   * After `released`, a reservation of the same owner comes too late and is not `reserved`.
   */
  reserve(request: ReservationRequest): Promise<Reservation>
  /**
   * Extends the lease, and writes a deleted record again. Resolves with `false` if the key no longer
   * belongs to the run.
   */
  renew(run: Run): Promise<boolean>
  /**
   * Records how the run ended, even after its lease or if the record was deleted. Resolves with `false`,
   * and changes nothing, if another run has the key or the run has already ended differently.
   */
  settle(run: Run, ending: Ending): Promise<boolean>
}
