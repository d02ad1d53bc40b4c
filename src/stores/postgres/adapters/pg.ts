import {
  awaitAnswer,
  DEFAULT_LIMITS,
  ROLLBACK_MS,
  type Row,
  type Statement,
  type StatementLimits,
  type TransactionLimits,
  type TransactionRunner,
} from '../runner.js'
import { PgExchange, type StatementResult } from './pg-exchange.js'
import {
  acquire,
  ignoreIdleClientErrors,
  isPgPool,
  type PgClientLike,
  type PgPoolLike,
} from './pg-pool.js'
import { OWN_PARSERS } from './pg-values.js'
import { isReadOnly } from './read-only.js'

/**
 * Runs transactions on a pool of pg (node-postgres) 8.23 or later; `transactionOf` returns the pool's
 * client. The pool gets one listener for its `error` event, so that an idle client that loses its
 * connection does not crash the process.
 *
 * @throws TypeError if `pool` is not a pool.
 *
 * @example
 * ```ts
 * import { fromPg, postgresStore } from 'express-service-auth/postgres'
 * import { Pool } from 'pg'
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
 * const store = postgresStore(fromPg(pool))
 * await store.check()
 * store.close()
 * await pool.end()
 * ```
 */
export function fromPg<T>(pool: PgPoolLike<T>): TransactionRunner<T> {
  if (!isPgPool(pool))
    throw new TypeError('fromPg: expected a Pool of pg, such as new Pool({ connectionString })')
  ignoreIdleClientErrors(pool)
  const pipelines = new WeakMap<object, PgPipeline | undefined>()

  const pipelineOf = (tx: T): PgPipeline => {
    const pipeline = pipelines.get(tx as object)
    if (pipeline) return pipeline
    throw new TypeError('fromPg: this client is in no transaction of this runner')
  }

  return {
    async transaction<R>(work: (tx: T) => Promise<R>, limits: TransactionLimits): Promise<R> {
      const { tx, client, release } = await acquire(pool, limits.acquireMs)
      const pipeline = createPgPipeline(client, limits)
      pipelines.set(tx as object, pipeline)
      let isReusable = true
      try {
        // `work` reaches `batch` synchronously, which sends `begin` with its statements. Then the call of
        // `begin` below does nothing; it is for other callers, whose `work` sends no statement immediately.
        const working = work(tx)
        pipeline.begin()
        const result = await working
        await pipeline.commit()
        return result
      } catch (error) {
        isReusable = (await isRolledBack(pipeline)) && !isReadOnly(error)
        throw error
      } finally {
        // Must come before the next transaction acquires the same client, possibly immediately.
        pipelines.set(tx as object, undefined)
        release(isReusable)
      }
    },

    async query(tx, text, values, limits = DEFAULT_LIMITS) {
      if (tx === undefined) return queryAlone(pool, { text, values }, limits)
      const [result] = await pipelineOf(tx).send([{ text, values }])
      return result?.rows ?? []
    },

    async batch(tx, statements) {
      const results = await pipelineOf(tx).send(statements)
      return results.map(({ rows }) => rows)
    },

    commitWith: (tx, statements) => pipelineOf(tx).commit(statements),
  }
}

const isRolledBack = (pipeline: PgPipeline): Promise<boolean> =>
  awaitAnswer(ROLLBACK_MS, pipeline.rollBack()).then(
    () => true,
    () => false,
  )

async function queryAlone(
  pool: PgPoolLike<unknown>,
  { text, values }: Statement,
  { acquireMs, statementMs }: StatementLimits,
): Promise<readonly Row[]> {
  const { client, release } = await acquire(pool, acquireMs)
  let isReusable = false
  try {
    const query = client.query({ text, values, types: OWN_PARSERS })
    const { rows } = await awaitAnswer(statementMs, query)
    isReusable = true
    return rows
  } finally {
    release(isReusable)
  }
}

/** Sends the statements of one transaction. */
interface PgPipeline {
  /** Sends statements in one round trip, with `begin` if nothing was sent before. */
  send(statements: readonly Statement[]): Promise<readonly StatementResult[]>
  /** Sends `begin` now, unless it was sent. */
  begin(): void
  /** Sends the statements, then `commit`. Does nothing after a commit; rejects if an earlier commit failed. */
  commit(statements?: readonly Statement[]): Promise<void>
  rollBack(): Promise<void>
}

type Send = (statements: readonly Statement[]) => Promise<readonly StatementResult[]>

function createPgPipeline(client: PgClientLike, limits: TransactionLimits): PgPipeline {
  const { isolation, transactionMs } = limits
  const begin = { text: isolation ? `begin isolation level ${isolation}` : 'begin', values: [] }
  const takesExchanges = client.connection !== undefined && client.pipeline !== true
  const sender = takesExchanges ? sendExchange(client, begin) : sendEach(client, begin)
  let committing: Promise<void> | undefined

  return {
    send: sender.send,
    begin: sender.begin,
    commit(statements = []) {
      const exchange = [...statements, { text: 'commit', values: [] }]
      // A COMMIT is never cancelled, but the wait for its answer is limited.
      committing ??= awaitAnswer(transactionMs, sender.send(exchange)).then(checkCommit)
      return committing
    },
    async rollBack() {
      await sender.send([{ text: 'rollback', values: [] }])
    },
  }
}

/** `commit` of a failed transaction does not fail: Postgres rolls back, and the command tag is `ROLLBACK`. */
function checkCommit(results: readonly StatementResult[]): void {
  const command = results.at(-1)?.command
  if (command !== 'COMMIT') throw new Error(`Postgres answered ${command} to a COMMIT.`)
}

interface ExchangeSender {
  readonly send: Send
  readonly begin: () => void
}

/**
 * Sends `begin` in one exchange with the first statements. The exchange is queued immediately and stays empty until
 * they come, so that queries of a handler come after `begin`.
 */
function sendExchange(client: PgClientLike, begin: Statement): ExchangeSender {
  let beginExchange: PgExchange | undefined = new PgExchange()
  const begun = beginExchange.settled
  client.query(beginExchange)

  const sendBegin = (statements: readonly Statement[] = []): void => {
    beginExchange?.send([begin, ...statements])
    beginExchange = undefined
  }
  return {
    begin: sendBegin,
    async send(statements) {
      if (beginExchange) {
        sendBegin(statements)
        return (await begun).slice(1)
      }
      const exchange = new PgExchange(statements)
      client.query(exchange)
      return exchange.settled
    },
  }
}

/** For clients that cannot take an exchange: sends one query per statement, without waiting for the previous ones. */
function sendEach(client: PgClientLike, begin: Statement): ExchangeSender {
  const sendOne = async ({ text, values }: Statement): Promise<StatementResult> => {
    const { rows, command } = await client.query({ text, values, types: OWN_PARSERS })
    return { rows, command }
  }
  const begun = sendOne(begin)
  begun.catch(() => {})
  return {
    begin: () => {},
    async send(statements) {
      const sent = await Promise.allSettled([begun, ...statements.map(sendOne)])
      const failed = sent.find((each) => each.status === 'rejected')
      if (failed) throw failed.reason
      return sent.slice(1).flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    },
  }
}
