import { hasFunctions } from '../../../base/options.js'
import type { Isolation, Row, TransactionRunner } from '../runner.js'
import { libraryRunner } from './library-runner.js'

/**
 * The parts of a `PrismaClient`, extended or not, that the adapter uses; `Tx` is its
 * `Prisma.TransactionClient`. TypeScript infers it from the overload at the same position.
 */
export interface PrismaLike<Tx> extends RawPrisma {
  /** The form for a list of queries; not used. */
  $transaction(queries: never[]): Promise<unknown>
  /** Runs `run` in a transaction. */
  $transaction<R>(run: (tx: Tx) => Promise<R>, limits?: PrismaLimits): Promise<R>
}

interface RawPrisma {
  /** Runs a raw query. */
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>
}

/**
 * Times in ms.
 *
 * @inline
 */
interface PrismaLimits {
  /** Default: 2000. */
  readonly maxWait: number
  /** Default: 5000. */
  readonly timeout: number
  readonly isolationLevel?: 'ReadCommitted' | 'RepeatableRead' | 'Serializable'
}

const ISOLATION_LEVELS = {
  'read committed': 'ReadCommitted',
  'repeatable read': 'RepeatableRead',
  serializable: 'Serializable',
} as const satisfies Record<Isolation, PrismaLimits['isolationLevel']>

/**
 * Runs a store on a `PrismaClient` (7) with `@prisma/adapter-pg`: `fromPrisma(prisma)`. Prisma's own limits
 * for a transaction are set to those of the store.
 *
 * Prisma listens to a client's errors too late. The adapter needs
 * `onConnect: (client) => client.on('error', () => {})`; otherwise the process crashes if a server stops just as it
 * accepts a connection. Prisma keeps a connection whose reply never comes: give the adapter the option `stream`.
 *
 * @throws TypeError if `prisma` is something else, or the client of a transaction.
 *
 * @example
 * ```ts
 * import { fromPrisma, type PrismaLike, postgresStore } from 'express-service-auth/postgres'
 *
 * // Call it with the `PrismaClient` that `prisma generate` has made.
 * export async function openStore<Tx>(prisma: PrismaLike<Tx>) {
 *   const store = postgresStore(fromPrisma(prisma))
 *   await store.check()
 *   return store
 * }
 * ```
 */
export function fromPrisma<Tx>(prisma: PrismaLike<Tx>): TransactionRunner<Tx> {
  if (!hasFunctions(prisma, ['$connect', '$transaction', '$queryRawUnsafe'])) {
    throw new TypeError('fromPrisma: expected a PrismaClient')
  }
  // No `connection`: Prisma limits the wait for a connection only for a transaction.
  return libraryRunner<Tx>({
    transaction({ acquireMs, transactionMs, isolation }) {
      const isolationLevel = isolation && ISOLATION_LEVELS[isolation]
      const limits = { maxWait: acquireMs, timeout: transactionMs }
      return (use) =>
        prisma.$transaction(use, isolationLevel ? { ...limits, isolationLevel } : limits)
    },
    async query(tx, { text, values }) {
      return (await (tx as RawPrisma).$queryRawUnsafe(text, ...values)) as readonly Row[]
    },
  })
}
