import { noConnection, within } from '../deadline.js'
import type { PgExchange } from './pg-exchange.js'
import type { TypeParsers } from './pg-values.js'

/** A pool of pg 8.23 or later; `T` is its client. */
export interface PgPoolLike<T> {
  /** The pool's own: tells it from a client. */
  readonly totalCount: number
  /** The pool's own: `stream` makes its sockets. */
  readonly options?: { readonly stream?: unknown }
  /** The pool's own. */
  connect(): Promise<T>
  connect(
    callback: (
      error: Error | undefined,
      client: T | undefined,
      done: (release?: unknown) => void,
    ) => void,
  ): void
  /** The pool's own. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** The pool's own. */
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

/** What the adapter uses of a client. */
export interface PgClientLike {
  /** Queries do not wait for each other's answers. */
  readonly pipeline?: boolean
  /** Only the client that is written in JavaScript has one. */
  readonly connection?: object
  query(exchange: PgExchange): unknown
  query(config: PgQueryConfig): Promise<PgResultLike>
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** A client of the pool, in our hands. */
export interface Loan<T> {
  readonly tx: T
  readonly client: PgClientLike
  /** Gives it back; one whose state is not known is destroyed. */
  giveBack(isSound: boolean): void
}

const LISTENED_TO = new WeakSet<object>()
const CLIENTS_LISTENED_TO = new WeakSet<object>()

export function isPgPool(pool: unknown): boolean {
  const { connect, on, totalCount } = Object(pool) as Record<string, unknown>
  const isPool = typeof connect === 'function' && typeof on === 'function'
  return isPool && typeof totalCount === 'number'
}

/** An idle client's error would end the process. The pool has removed that client already. */
export function outliveIdleErrors(pool: PgPoolLike<unknown>): void {
  if (LISTENED_TO.has(pool)) return
  LISTENED_TO.add(pool)
  pool.on('error', () => {})
}

/** The same for clients in use, where a library that borrows them does not listen itself. */
export function outliveClientErrors(pool: PgPoolLike<unknown>): void {
  if (CLIENTS_LISTENED_TO.has(pool)) return
  CLIENTS_LISTENED_TO.add(pool)
  pool.on('acquire', (client) => {
    if (CLIENTS_LISTENED_TO.has(client as object)) return
    CLIENTS_LISTENED_TO.add(client as object)
    clientOf(client).on('error', () => {})
  })
}

/** A client within the time; one that comes later goes back at once. */
export function borrow<T>(pool: PgPoolLike<T>, acquireMs: number): Promise<Loan<T>> {
  return within(acquireMs, connect(pool), {
    tooLate: () => noConnection(acquireMs),
    late: (loan) => loan.giveBack(true),
  })
}

/**
 * By the callback, in which a client is listened to at once: one byte stream can hold that it is ready
 * and that the server ends it, and a promise goes on only after both.
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
  // The query under way, or the next one, fails with it, too.
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
