const MAX_RECONNECT_DELAY_MS = 500
/** Opening a connection, including TLS, may take longer than a reply. */
const CONNECT_MARGIN_MS = 1500
const MAX_CONNECT_TIMEOUT_MS = 10_000
/** The extra time for a server to send anything, after the last caller has timed out. */
const STALL_MARGIN_MS = 1000

/** The delay before reconnecting if Redis refuses the login or the database. */
export const REFUSED_RETRY_MS = 500
export const RETRY_DELAY_IN_CLUSTER_MS = 100
export const MAX_REDIRECTIONS = 16

/** The time limit for a denylist to connect, including login and the query of a sentinel or cluster node. */
export const DENYLIST_CONNECT_TIMEOUT_MS = 250

/** Returns the delay in milliseconds before an attempt to reconnect; the first `attempt` is 1. */
export const reconnectDelay = (attempt: number): number =>
  Math.min(MAX_RECONNECT_DELAY_MS, 25 * 2 ** Math.min(attempt, 10))

export const connectTimeoutFor = (longestReplyMs: number): number =>
  Math.min(MAX_CONNECT_TIMEOUT_MS, longestReplyMs + CONNECT_MARGIN_MS)

/** Returns the milliseconds after which a connection without any reply is replaced. */
export const stallTimeoutFor = (longestReplyMs: number): number => longestReplyMs + STALL_MARGIN_MS
