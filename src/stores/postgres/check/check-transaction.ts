import { randomBytes } from 'node:crypto'
import type { Row, TransactionLimits, TransactionRunner } from '../runner.js'
import { lockLiteral } from '../sql/literals.js'
import { onlyRow, textIn } from '../sql/read-columns.js'
import { sqlStateOf } from '../sql-state.js'
import type { Findings } from './server-facts.js'

const IDENTITY = `select pg_catalog.pg_current_xact_id()::text as transaction,
  pg_catalog.pg_backend_pid()::text as backend`

const POOLED =
  'statements of a transaction do not stay together: a pooler pools by statement, and must by transaction'

const LOCKS = 'advisory locks do not hold: two connections got the same one'

const UNTRIED =
  'no second connection was to be had in time, so it is not known whether advisory locks hold'

/** Tries whether a transaction is one, and whether a lock that it has taken is refused to others. */
export async function holdTogether<Tx>(
  runner: TransactionRunner<Tx>,
  limits: TransactionLimits,
): Promise<Findings> {
  try {
    return await runner.transaction((tx) => tryLocks(runner, tx, limits), limits)
  } catch (error) {
    if (isStatementPooling(error)) return { faults: [POOLED], warnings: [] }
    throw error
  }
}

async function tryLocks<Tx>(
  runner: TransactionRunner<Tx>,
  tx: Tx,
  { acquireMs, transactionMs }: TransactionLimits,
): Promise<Findings> {
  // Nobody else can hold it.
  const lock = lockLiteral(randomBytes(8).readBigInt64BE().toString())
  const take = `select pg_catalog.pg_try_advisory_xact_lock(${lock})::text as taken`
  const first = onlyRow(await runner.query(tx, IDENTITY, []))
  const own = onlyRow(await runner.query(tx, take, []))
  const others = await elsewhere(() =>
    runner.query(undefined, take, [], { acquireMs, statementMs: transactionMs }),
  )
  const last = onlyRow(await runner.query(tx, IDENTITY, []))
  if (!isSameTransaction(first, last)) return { faults: [POOLED], warnings: [] }
  if (others === undefined) return { faults: [], warnings: [UNTRIED] }
  const holds = textIn(own, 'taken') === 'true' && textIn(onlyRow(others), 'taken') === 'false'
  return { faults: holds ? [] : [LOCKS], warnings: [] }
}

/** What another connection answers; undefined where there is none, as in a pool of one. */
async function elsewhere(ask: () => Promise<readonly Row[]>): Promise<readonly Row[] | undefined> {
  try {
    return await ask()
  } catch (error) {
    if (sqlStateOf(error) === undefined) return undefined
    throw error
  }
}

const isSameTransaction = (first: Row, last: Row): boolean =>
  ['transaction', 'backend'].every((column) => textIn(first, column) === textIn(last, column))

/** What pgbouncer says to `begin`. */
const POOLING_MESSAGE = /statement pooling mode/

function isStatementPooling(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 8; depth++) {
    if (POOLING_MESSAGE.test(at.message)) return true
    at = at.cause
  }
  return false
}
