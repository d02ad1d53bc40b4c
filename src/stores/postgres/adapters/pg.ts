import { awaitAnswer, DEFAULT_LIMITS, ROLLBACK_MS } from '../deadline.js'
import type {
  Row,
  Statement,
  StatementLimits,
  TransactionLimits,
  TransactionRunner,
} from '../runner.js'
import { createPgPipeline, type PgPipeline } from './pg-pipeline.js'
import { acquire, ignoreIdleClientErrors, isPgPool, type PgPoolLike } from './pg-pool.js'
import { OWN_PARSERS } from './pg-values.js'
import { isReadOnly } from './read-only.js'

/**
 * Runs transactions on a pool of pg (node-postgres) 8.23 or later; `transactionOf` returns the pool's
 * client. The pool gets one listener for its `error` event, so that an idle client that loses its
 * connection does not crash the process.
 *
 * @throws TypeError if `pool` is not a pool.
 */
export function fromPg<T>(pool: PgPoolLike<T>): TransactionRunner<T> {
  if (!isPgPool(pool)) throw new TypeError('fromPg: expected a Pool of pg')
  ignoreIdleClientErrors(pool)
  const pipelines = new Map<object, PgPipeline>()

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
      let isSound = true
      try {
        // `work` reaches `batch` synchronously, which sends `begin` with its statements. Then the call of
        // `begin` below does nothing; it is for other callers, whose `work` sends no statement at once.
        const working = work(tx)
        pipeline.begin()
        const result = await working
        await pipeline.commit()
        return result
      } catch (error) {
        isSound = (await isRolledBack(pipeline)) && !isReadOnly(error)
        throw error
      } finally {
        // Must come before the next transaction acquires the same client, possibly immediately.
        pipelines.delete(tx as object)
        release(isSound)
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
  let isSound = false
  try {
    const query = client.query({ text, values, types: OWN_PARSERS })
    const { rows } = await awaitAnswer(statementMs, query)
    isSound = true
    return rows
  } finally {
    release(isSound)
  }
}
