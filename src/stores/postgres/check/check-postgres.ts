import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import type { Row, Statement, TransactionRunner } from '../runner.js'
import { silentConnectionWarnings } from '../silent-connections.js'
import { onlyRow, textIn } from '../sql/read-columns.js'
import { createStatements } from '../sql/statements.js'
import { sqlStateOf } from '../sql-state.js'
import { holdTogether } from './check-transaction.js'
import { schemaFacts, schemaFaults, untrustedObjects } from './schema-facts.js'
import { foreignServer, SERVER_FACTS, SERVER_NAME, serverFindings } from './server-facts.js'

export interface CheckOptions {
  readonly schema: string
  /** A role that may own the schema, beside those that are trusted anyway. */
  readonly schemaOwner?: string | undefined
  /** The wait for a connection, in ms. */
  readonly acquireMs: number
  /** Whether the store sweeps, and so must be allowed to delete. */
  readonly sweeps: boolean
}

const STATEMENT_MS = 5000

/**
 * Looks whether the database can be trusted with records, and whether all is there that they need.
 * Resolves to what may cost acknowledged writes, or time, all the same.
 *
 * @throws ServiceAuthError `unavailable` when it is out of reach, `unfit` with every fault that was found.
 */
export async function checkPostgres<Tx>(
  runner: TransactionRunner<Tx>,
  { schema, schemaOwner, acquireMs, sweeps }: CheckOptions,
): Promise<readonly string[]> {
  const limits = { acquireMs, statementMs: STATEMENT_MS }
  const ask = (text: string): Promise<readonly Row[]> =>
    inReach(runner.query(undefined, text, [], limits))

  const foreign = foreignServer(onlyRow(await ask(SERVER_NAME)))
  // Another kind of server need not understand the rest.
  if (foreign.length > 0) throw unfit(foreign)
  const server = serverFindings(onlyRow(await ask(SERVER_FACTS)))
  const faults = [...server.faults, ...schemaFaults(schema, await ask(schemaFacts(schema, sweeps)))]
  const objects = await ask(untrustedObjects(schema, schemaOwner))
  faults.push(...objects.map((row) => textIn(row, 'fault') ?? ''))
  const warnings = [...server.warnings, ...silentConnectionWarnings(runner)]
  if (server.takesWrites) {
    const found = await inReach(holdTogether(runner, { acquireMs, transactionMs: STATEMENT_MS }))
    faults.push(...found.faults)
    warnings.push(...found.warnings)
  }
  if (faults.length > 0) throw unfit(faults)
  if (!(await hasConnectionCheck(ask, createStatements(schema).probe()))) {
    warnings.push(
      'the server cannot check connections while it works: the lock of a process that died lasts as long as its statement',
    )
  }
  return warnings
}

async function hasConnectionCheck(
  ask: (text: string) => Promise<unknown>,
  probe: Statement,
): Promise<boolean> {
  try {
    await ask(probe.text)
    return true
  } catch (error) {
    if (error instanceof ServiceAuthError && error.code === 'unfit') return false
    throw error
  }
}

/** Classes of SQLSTATE that tell of a server which serves nobody at present. */
const AWAY = ['08', '53', '57', '58']

/** Says what has failed by its code alone: messages of clients hold addresses, names and values. */
async function inReach<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    const sqlState = sqlStateOf(error)
    if (sqlState === undefined || AWAY.includes(sqlState.slice(0, 2))) {
      throw new ServiceAuthError(
        'unavailable',
        `Postgres is out of reach${reason(error, sqlState)}`,
      )
    }
    throw unfit([`it has refused what it was asked, with SQLSTATE ${sqlState}`])
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
