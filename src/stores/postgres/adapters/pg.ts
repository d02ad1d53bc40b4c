import { noAnswer, ROLLBACK_MS, within } from '../deadline.js'
import type {
  Row,
  Statement,
  StatementLimits,
  TransactionLimits,
  TransactionRunner,
} from '../runner.js'
import { type Conversation, converse } from './pg-pipeline.js'
import { borrow, isPgPool, type Loan, outliveIdleErrors, type PgPoolLike } from './pg-pool.js'
import { OWN_PARSERS } from './pg-values.js'
import { isReadOnly } from './read-only.js'

const DEFAULT_LIMITS: StatementLimits = { acquireMs: 1000, statementMs: 30_000 }

/**
 * Runs transactions on a pool of pg (node-postgres) 8.23 or later; `transactionOf` returns the pool's
 * client. The pool gets one listener for its `error` event, so that an idle client that loses its
 * connection does not crash the process.
 *
 * @throws TypeError if `pool` is not a pool.
 */
export function fromPg<T>(pool: PgPoolLike<T>): TransactionRunner<T> {
  if (!isPgPool(pool)) throw new TypeError('fromPg: expected a Pool of pg')
  outliveIdleErrors(pool)
  const conversations = new Map<object, Conversation>()

  const conversationOf = (tx: T): Conversation => {
    const conversation = conversations.get(tx as object)
    if (conversation) return conversation
    throw new TypeError('fromPg: this client is in no transaction of this runner')
  }

  return {
    async transaction<R>(work: (tx: T) => Promise<R>, limits: TransactionLimits): Promise<R> {
      const loan = await borrow(pool, limits.acquireMs)
      const conversation = converse(loan.client, limits)
      conversations.set(loan.tx as object, conversation)
      const giveBack = (isSound: boolean): void => {
        // Must come before the next transaction borrows the same client, possibly immediately.
        conversations.delete(loan.tx as object)
        loan.giveBack(isSound)
      }
      return runTransaction({ loan: { ...loan, giveBack }, conversation }, work)
    },

    async query(tx, text, values, limits = DEFAULT_LIMITS) {
      if (tx === undefined) return queryAlone(pool, { text, values }, limits)
      const [result] = await conversationOf(tx).send([{ text, values }])
      return result?.rows ?? []
    },

    async batch(tx, statements) {
      const results = await conversationOf(tx).send(statements)
      return results.map(({ rows }) => rows)
    },

    commitWith: (tx, statements) => conversationOf(tx).commit(statements),
  }
}

interface Running<T> {
  readonly loan: Loan<T>
  readonly conversation: Conversation
}

async function runTransaction<T, R>(
  { loan, conversation }: Running<T>,
  work: (tx: T) => Promise<R>,
): Promise<R> {
  try {
    const working = work(loan.tx)
    conversation.openUnlessOpened()
    const result = await working
    await conversation.commit()
    loan.giveBack(true)
    return result
  } catch (error) {
    await rollBack({ loan, conversation }, error)
    throw error
  }
}

async function rollBack<T>({ loan, conversation }: Running<T>, reason: unknown): Promise<void> {
  const tooLate = (): Error => noAnswer(ROLLBACK_MS)
  const isRolledBack = await within(ROLLBACK_MS, conversation.rollBack(), { tooLate }).then(
    () => true,
    () => false,
  )
  loan.giveBack(isRolledBack && !isReadOnly(reason))
}

async function queryAlone(
  pool: PgPoolLike<unknown>,
  { text, values }: Statement,
  { acquireMs, statementMs }: StatementLimits,
): Promise<readonly Row[]> {
  const loan = await borrow(pool, acquireMs)
  let isSound = false
  try {
    const query = loan.client.query({ text, values, types: OWN_PARSERS })
    const { rows } = await within(statementMs, query, { tooLate: () => noAnswer(statementMs) })
    isSound = true
    return rows
  } finally {
    loan.giveBack(isSound)
  }
}
