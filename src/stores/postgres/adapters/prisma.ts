import type { Isolation, Row, TransactionRunner } from '../runner.js'
import { noteKeepsSilentConnections } from '../silent-connections.js'
import { libraryRunner } from './library-runner.js'
import { requireMembers } from './required-members.js'

/**
 * What is used of a `PrismaClient`, extended or not; `Tx` is its `Prisma.TransactionClient`. TypeScript infers
 * it from the overload that stands at the same place.
 */
export interface PrismaLike<Tx> extends RawPrisma {
  /** Prisma's own. */
  $transaction(queries: never[]): Promise<unknown>
  /** Prisma's own. */
  $transaction<R>(run: (tx: Tx) => Promise<R>, limits?: PrismaLimits): Promise<R>
}

interface RawPrisma {
  /** Prisma's own. */
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>
}

/**
 * Times in ms.
 *
 * @inline
 */
interface PrismaLimits {
  /** By default 2000. */
  readonly maxWait: number
  /** By default 5000. */
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
 * `onConnect: (client) => client.on('error', () => {})`, or a server that is stopped just as it lets a
 * connection in ends the process. Prisma keeps a connection whose reply never comes: give the adapter the
 * option `stream`.
 *
 * @throws TypeError when `prisma` is something else, or the client of a transaction.
 */
export function fromPrisma<Tx>(prisma: PrismaLike<Tx>): TransactionRunner<Tx> {
  requireMembers('fromPrisma', 'a PrismaClient', prisma, [
    '$connect',
    '$transaction',
    '$queryRawUnsafe',
  ])
  const runner = libraryRunner<Tx, RawPrisma>({
    transaction({ acquireMs, transactionMs, isolation }) {
      const isolationLevel = isolation && ISOLATION_LEVELS[isolation]
      const limits = { maxWait: acquireMs, timeout: transactionMs }
      return (use) =>
        prisma.$transaction(use, isolationLevel ? { ...limits, isolationLevel } : limits)
    },
    connection(limits) {
      if (!limits) return (use) => use(prisma)
      // Only a transaction, here of one statement, is given up by Prisma where no connection comes in time.
      const own = { maxWait: limits.acquireMs, timeout: limits.statementMs }
      return (use) => prisma.$transaction((tx) => use(tx as RawPrisma), own)
    },
    async query(on, text, values) {
      return (await (on as RawPrisma).$queryRawUnsafe(text, ...values)) as readonly Row[]
    },
  })
  // The options of its adapter cannot be seen.
  return noteKeepsSilentConnections(runner, 'the option stream of PrismaPg')
}
