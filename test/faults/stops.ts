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

export const LEASE_MS = 1000
/** More than the kernel takes at once. */
export const LARGE_BYTES = 20_000_000
