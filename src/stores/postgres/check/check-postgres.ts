import { randomBytes } from 'node:crypto'
import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import type { Row, Statement, TransactionLimits, TransactionRunner } from '../runner.js'
import { silentConnectionWarnings } from '../silent-connections.js'
import { lockLiteral } from '../sql/literals.js'
import { onlyRow, textIn } from '../sql/read-columns.js'
import { createStatements } from '../sql/statements.js'
import { membersOf, sqlStateOf } from '../sql-state.js'
import {
  foreignServer,
  type PostgresFindings,
  SERVER_FACTS,
  SERVER_NAME,
  schemaFacts,
  schemaFaults,
  serverFindings,
  untrustedObjects,
} from './postgres-facts.js'

export interface PostgresCheckOptions {
  readonly schema: string
  /** A role that may own the schema, in addition to the roles that are always trusted. */
  readonly schemaOwner?: string | undefined
  /** The maximum wait for a connection, in ms. */
  readonly acquireMs: number
  /** Whether the store sweeps, and so needs the right to delete. */
  readonly sweeps: boolean
}

const STATEMENT_MS = 5000

/**
 * Checks whether the database can be trusted with records, and has everything that they need. Resolves to
 * warnings: acknowledged writes may be lost, or a lock may be held longer than necessary.
 *
 * @throws ServiceAuthError `unavailable` if it cannot be reached, `unfit` with every fault that was found.
 */
export async function checkPostgres<Tx>(
  runner: TransactionRunner<Tx>,
  { schema, schemaOwner, acquireMs, sweeps }: PostgresCheckOptions,
): Promise<readonly string[]> {
  const limits = { acquireMs, statementMs: STATEMENT_MS }
  const query = (text: string): Promise<readonly Row[]> =>
    explainFailure(runner.query(undefined, text, [], limits))

  const foreign = foreignServer(onlyRow(await query(SERVER_NAME)))
  // Another kind of server may not understand the other queries.
  if (foreign.length > 0) throw unfit(foreign)
  const server = serverFindings(onlyRow(await query(SERVER_FACTS)))
  const faults = [
    ...server.faults,
    ...schemaFaults(schema, await query(schemaFacts(schema, sweeps))),
  ]
  const objects = await query(untrustedObjects(schema, schemaOwner))
  faults.push(...objects.map((row) => textIn(row, 'fault') ?? ''))
  const warnings = [...server.warnings, ...silentConnectionWarnings(runner)]
  if (server.takesWrites) {
    const findings = await explainFailure(
      testTransaction(runner, { acquireMs, transactionMs: STATEMENT_MS }),
    )
    faults.push(...findings.faults)
    warnings.push(...findings.warnings)
  }
  if (faults.length > 0) throw unfit(faults)
  if (!(await hasConnectionCheck(query, createStatements(schema).checkConnection()))) {
    warnings.push(
      'the server cannot check connections while it works: the lock of a process that died lasts as long as its statement',
    )
  }
  return warnings
}

async function hasConnectionCheck(
  query: (text: string) => Promise<unknown>,
  probe: Statement,
): Promise<boolean> {
  try {
    await query(probe.text)
    return true
  } catch (error) {
    // The server has refused the query, because it does not know the setting.
    if (error instanceof ServiceAuthError && error.code === 'unfit') return false
    throw error
  }
}

/** SQLSTATE classes of a server that cannot serve at present. */
const UNAVAILABLE_CLASSES = ['08', '53', '57', '58']

/** Reports a failure by its code alone, because messages of clients contain addresses, names and values. */
async function explainFailure<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    const sqlState = sqlStateOf(error)
    if (sqlState === undefined || UNAVAILABLE_CLASSES.includes(sqlState.slice(0, 2))) {
      throw new ServiceAuthError('unavailable', `Postgres is unreachable${reason(error, sqlState)}`)
    }
    throw unfit([`it refused a query with SQLSTATE ${sqlState}`])
  }
}

const CODE = /^E[A-Z_]+$/

function reason(error: unknown, sqlState: string | undefined): string {
  if (sqlState !== undefined) return `: SQLSTATE ${sqlState}`
  const code = typeof error === 'object' && error !== null && Reflect.get(error, 'code')
  return typeof code === 'string' && CODE.test(code) ? `: ${code}` : ''
}

const unfit = (faults: readonly string[]): ServiceAuthError =>
  new ServiceAuthError('unfit', `Postgres must not be used: ${faults.join('; ')}`)

const IDENTITY = `select pg_catalog.pg_current_xact_id()::text as transaction,
  pg_catalog.pg_backend_pid()::text as backend`

const POOLED =
  'statements of a transaction do not stay together: the pooler must use transaction pooling, not statement pooling'

const LOCKS = 'advisory locks do not hold: two connections got the same one'

const UNTRIED =
  'no second connection was available in time, so it is unknown whether advisory locks hold'

/** Tests whether the statements of a transaction stay together, and whether its lock is refused to others. */
async function testTransaction<Tx>(
  runner: TransactionRunner<Tx>,
  limits: TransactionLimits,
): Promise<PostgresFindings> {
  try {
    return await runner.transaction((tx) => testLocks(runner, tx, limits), limits)
  } catch (error) {
    if (isStatementPooling(error)) return { faults: [POOLED], warnings: [] }
    throw error
  }
}

async function testLocks<Tx>(
  runner: TransactionRunner<Tx>,
  tx: Tx,
  { acquireMs, transactionMs }: TransactionLimits,
): Promise<PostgresFindings> {
  // Random, so that no other session holds it.
  const lock = lockLiteral(randomBytes(8).readBigInt64BE().toString())
  const take = `select pg_catalog.pg_try_advisory_xact_lock(${lock})::text as taken`
  const first = onlyRow(await runner.query(tx, IDENTITY, []))
  const own = onlyRow(await runner.query(tx, take, []))
  const others = await onAnotherConnection(() =>
    runner.query(undefined, take, [], { acquireMs, statementMs: transactionMs }),
  )
  const last = onlyRow(await runner.query(tx, IDENTITY, []))
  if (!isSameTransaction(first, last)) return { faults: [POOLED], warnings: [] }
  if (others === undefined) return { faults: [], warnings: [UNTRIED] }
  const holds = textIn(own, 'taken') === 'true' && textIn(onlyRow(others), 'taken') === 'false'
  return { faults: holds ? [] : [LOCKS], warnings: [] }
}

/** Returns the answer on another connection; `undefined` if there is none, as in a pool of one. */
async function onAnotherConnection(
  query: () => Promise<readonly Row[]>,
): Promise<readonly Row[] | undefined> {
  try {
    return await query()
  } catch (error) {
    if (sqlStateOf(error) === undefined) return undefined
    throw error
  }
}

const isSameTransaction = (first: Row, last: Row): boolean =>
  ['transaction', 'backend'].every((column) => textIn(first, column) === textIn(last, column))

/** Part of pgbouncer's answer to `begin`. */
const POOLING_MESSAGE = /statement pooling mode/

function isStatementPooling(error: unknown): boolean {
  for (const text of membersOf(error, ['message'])) {
    if (typeof text === 'string' && POOLING_MESSAGE.test(text)) return true
  }
  return false
}
