import { noConnection, within } from '../deadline.js'
import type { PgExchange } from './pg-exchange.js'
import type { TypeParsers } from './pg-values.js'

/** A pool of pg 8.23 or later; `T` is its client. */
export interface PgPoolLike<T> {
  /** Distinguishes a pool from a client. */
  readonly totalCount: number
  /** `stream` creates the pool's sockets. */
  readonly options?: { readonly stream?: unknown }
  /** Borrows a client. */
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
  /** Emitted when a client is borrowed. */
  on(event: 'acquire', listener: (client: unknown) => void): unknown
}

export interface PgResultLike {
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

/** A borrowed client. */
export interface Loan<T> {
  readonly tx: T
  readonly client: PgClientLike
  /** Returns the client to the pool; destroys it if its state is unknown. */
  giveBack(isSound: boolean): void
}

const LISTENED_TO = new WeakSet<object>()
const CLIENTS_LISTENED_TO = new WeakSet<object>()

export function isPgPool(pool: unknown): boolean {
  const { connect, on, totalCount } = Object(pool) as Record<string, unknown>
  const isPool = typeof connect === 'function' && typeof on === 'function'
  return isPool && typeof totalCount === 'number'
}

/** An idle client's error would crash the process. The pool has already removed that client. */
export function outliveIdleErrors(pool: PgPoolLike<unknown>): void {
  if (LISTENED_TO.has(pool)) return
  LISTENED_TO.add(pool)
  pool.on('error', () => {})
}

/** Adds a listener to clients in use, for a library that borrows them without a listener of its own. */
export function outliveClientErrors(pool: PgPoolLike<unknown>): void {
  if (CLIENTS_LISTENED_TO.has(pool)) return
  CLIENTS_LISTENED_TO.add(pool)
  pool.on('acquire', (client) => {
    if (CLIENTS_LISTENED_TO.has(client as object)) return
    CLIENTS_LISTENED_TO.add(client as object)
    clientOf(client).on('error', () => {})
  })
}

/** Borrows a client within `acquireMs`. A client that comes later is returned immediately. */
export function borrow<T>(pool: PgPoolLike<T>, acquireMs: number): Promise<Loan<T>> {
  return within(acquireMs, connect(pool), {
    tooLate: () => noConnection(acquireMs),
    late: (loan) => loan.giveBack(true),
  })
}

/**
 * Uses the callback form, so that the client has a listener immediately: one chunk of bytes can
 * contain both its readiness and the end of its connection, and a promise continues only after both.
 */
function connect<T>(pool: PgPoolLike<T>): Promise<Loan<T>> {
  return new Promise((resolve, reject) => {
    pool.connect((error, tx) => {
      if (tx === undefined) reject(error)
      else resolve(loanOf(tx))
    })
  })
}

function loanOf<T>(tx: T): Loan<T> {
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
    giveBack(isSound) {
      client.removeListener('error', lost)
      client.release(isLost || !isSound)
    },
  }
}

function clientOf(tx: unknown): PgClientLike {
  return tx as PgClientLike
}
