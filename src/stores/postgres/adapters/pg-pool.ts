import { withDeadline } from '../../../base/deadline.js'
import { noConnection } from '../runner.js'
import type { PgExchange } from './pg-exchange.js'
import type { TypeParsers } from './pg-values.js'

/** A pool of pg 8.23 or later; `T` is its client. */
export interface PgPoolLike<T> {
  /** Distinguishes a pool from a client. */
  readonly totalCount: number
  /** `stream` creates the pool's sockets. */
  readonly options?: { readonly stream?: unknown }
  /** Acquires a client. */
  connect(): Promise<T>
  connect(
    callback: (
      error: Error | undefined,
      client: T | undefined,
      done: (release?: unknown) => void,
    ) => void,
  ): void
  /** Emitted when an idle client fails. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Emitted when a client is acquired. */
  on(event: 'acquire', listener: (client: unknown) => void): unknown
}

interface PgResultLike {
  readonly command: string
  readonly rows: Record<string, unknown>[]
}

interface PgQueryConfig {
  readonly text: string
  readonly values: readonly unknown[]
  readonly types: TypeParsers
}

/** The parts of a client that the adapter uses. */
export interface PgClientLike {
  /** Whether queries are sent without waiting for earlier answers. */
  readonly pipeline?: boolean
  /** Only the JavaScript client has one. */
  readonly connection?: object
  query(exchange: PgExchange): unknown
  query(config: PgQueryConfig): Promise<PgResultLike>
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** A client of the pool. */
interface AcquiredClient<T> {
  readonly tx: T
  readonly client: PgClientLike
  /** Returns the client to the pool; destroys it if its state is unknown. */
  release(isReusable: boolean): void
}

const POOLS_WITH_LISTENER = new WeakSet<object>()
const CLIENTS_WITH_LISTENER = new WeakSet<object>()

export function isPgPool(pool: unknown): boolean {
  const { connect, on, totalCount } = Object(pool) as Record<string, unknown>
  const isPool = typeof connect === 'function' && typeof on === 'function'
  return isPool && typeof totalCount === 'number'
}

/** An idle client's error would crash the process. The pool has already removed that client. */
export function ignoreIdleClientErrors(pool: PgPoolLike<unknown>): void {
  if (POOLS_WITH_LISTENER.has(pool)) return
  POOLS_WITH_LISTENER.add(pool)
  pool.on('error', () => {})
}

/** Adds a listener to clients in use, for a library that acquires them without adding one. */
export function ignoreClientErrors(pool: PgPoolLike<unknown>): void {
  if (CLIENTS_WITH_LISTENER.has(pool)) return
  CLIENTS_WITH_LISTENER.add(pool)
  pool.on('acquire', (client) => {
    if (CLIENTS_WITH_LISTENER.has(client as object)) return
    CLIENTS_WITH_LISTENER.add(client as object)
    clientOf(client).on('error', () => {})
  })
}

/** Acquires a client within `acquireMs`. A client that comes later is released immediately. */
export function acquire<T>(pool: PgPoolLike<T>, acquireMs: number): Promise<AcquiredClient<T>> {
  return withDeadline(
    {
      timeoutMs: acquireMs,
      timeoutError: () => noConnection(acquireMs),
      onLateValue: ({ release }) => release(true),
    },
    connect(pool),
  )
}

/**
 * Uses the callback form, so that the client has a listener immediately: one chunk of bytes can
 * contain both its readiness and the end of its connection, and a promise continues only after both.
 */
function connect<T>(pool: PgPoolLike<T>): Promise<AcquiredClient<T>> {
  return new Promise((resolve, reject) => {
    pool.connect((error, tx) => {
      if (tx === undefined) reject(error)
      else resolve(acquiredClient(tx))
    })
  })
}

function acquiredClient<T>(tx: T): AcquiredClient<T> {
  const client = clientOf(tx)
  let isLost = false
  // The current query, or the next one, fails with this error too.
  const lost = (): void => {
    isLost = true
  }
  client.on('error', lost)
  return {
    tx,
    client,
    release(isReusable) {
      client.removeListener('error', lost)
      client.release(isLost || !isReusable)
    },
  }
}

function clientOf(tx: unknown): PgClientLike {
  return tx as PgClientLike
}
