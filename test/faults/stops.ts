/** Where a request can be stopped on its way through a receiver, in order. */
export type Stop =
  | 'before reserving'
  /** Redis has been asked and has not answered. */
  | 'reserving'
  | 'reserved'
  | 'before the write'
  | 'after the write'
  | 'before storing'
  | 'storing'
  | 'stored'
  | 'before sending'
  | 'while sending'
  /** Of a response that is too large to be kept. */
  | 'while streaming'

/** A renewal may be late by most of it: a busy machine stands still for a second. */
export const LEASE_MS = 3000
/** More than the kernel takes at once. */
export const LARGE_BYTES = 20_000_000
