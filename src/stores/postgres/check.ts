import { randomUUID } from 'node:crypto'
import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import { onlyRow, type Row, textIn } from './runner.js'
import { COMMENT, SCHEMA_VERSION } from './schema.js'
import { isEndedByHandler, recordIds } from './sql/statements.js'
import { messageIncludes, sqlStateOf } from './sql-state.js'
import { query, type StoreContext } from './store-context.js'

const STATEMENT_MS = 5000

/**
 * Checks whether the database can be trusted with records, and has everything that they need; `sweeps`: also the right
 * to delete. Resolves to warnings: acknowledged writes may be lost, or a lock may be held longer than necessary.
 *
 * @throws ServiceAuthError `unavailable` if it cannot be reached, `unfit` with every fault that was found.
 */
export async function checkPostgres<Tx>(
  store: StoreContext<Tx>,
  sweeps: boolean,
): Promise<readonly string[]> {
  const { schema } = store
  const ask = (text: string): Promise<readonly Row[]> =>
    explainFailure(query(store, { text, values: [] }, { statementMs: STATEMENT_MS }))

  const foreign = foreignServer(onlyRow(await ask(SERVER_NAME)))
  // Another kind of server may not understand the other queries.
  if (foreign !== undefined) throw unfit([foreign])
  const server = serverFindings(onlyRow(await ask(SERVER_FACTS)))
  const objects = schemaFindings(schema, await ask(schemaFacts(schema, sweeps)))
  const faults = [...server.faults, ...objects.faults]
  if (faults.length > 0) throw unfit(faults)
  await explainFailure(tryRun(store))
  return [...server.warnings, ...objects.warnings]
}

/** `faults` are reasons not to use a server; `warnings` name what it may lose. */
interface PostgresFindings {
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

/** SQL that identifies the server. Every server with the protocol of Postgres answers it. */
const SERVER_NAME = `select version() as version,
  current_setting('server_version_num') as number`

const OLDEST_NUMBER = 140_000
const OLDEST = 14

/** Servers with the protocol of Postgres whose advisory locks are missing, or local to a node. */
const RELATIVES: readonly (readonly [RegExp, string])[] = [
  [/^CockroachDB/i, 'CockroachDB'],
  [/-YB-|Yugabyte/i, 'YugabyteDB'],
]

/** Returns the fault in the server's kind or version. */
export function foreignServer(row: Row): string | undefined {
  const version = textIn(row, 'version') ?? ''
  const relative = RELATIVES.find(([pattern]) => pattern.test(version))
  if (relative) return `the server is ${relative[1]}, whose advisory locks do not hold everywhere`
  return Number(textIn(row, 'number')) >= OLDEST_NUMBER
    ? undefined
    : `the server is older than Postgres ${OLDEST}`
}

/** SQL for the state and the settings of the server, as text columns. For servers that pass `foreignServer`. */
const SERVER_FACTS = `select
  pg_catalog.pg_is_in_recovery()::text as standby,
  pg_catalog.current_setting('transaction_read_only') as readonly,
  pg_catalog.current_setting('synchronous_commit') as flush,
  (select count(*) from pg_catalog.pg_stat_replication
    where sync_state is null or state is distinct from 'backup')::text as standbys,
  (select count(*) from pg_catalog.pg_stat_replication
    where sync_state in ('sync', 'quorum', 'potential')
      or sync_state is null and pg_catalog.current_setting('synchronous_standby_names') <> ''
  )::text as awaited`

const ASYNCHRONOUS =
  'a standby is asynchronous: a failover to it takes writes that were acknowledged, with their records'

/** Evaluates the row of `SERVER_FACTS`. */
export function serverFindings(row: Row): PostgresFindings {
  const faults: string[] = []
  if (textIn(row, 'standby') === 'true') faults.push('the server is a standby: it is read-only')
  else if (textIn(row, 'readonly') !== 'off') faults.push('transactions are read-only')
  if (textIn(row, 'flush') === 'off') {
    faults.push('synchronous_commit is off: a crash takes writes that were acknowledged')
  }
  return { faults, warnings: isAsynchronous(row) ? [ASYNCHRONOUS] : [] }
}

/**
 * Whether COMMIT does not wait for some standby. If the role may not see the state of a standby, the settings decide.
 */
function isAsynchronous(row: Row): boolean {
  const standbys = Number(textIn(row, 'standbys'))
  if (standbys === 0) return false
  return textIn(row, 'flush') === 'local' || Number(textIn(row, 'awaited')) < standbys
}

/**
 * SQL for the comment on a schema, the rights of the current role, and whether `begin_run` checks connections,
 * as rows of texts: `needed`, and `granted`, which is null if the object is missing.
 */
function schemaFacts(schema: string, sweeps: boolean): string {
  const rights = sweeps ? "'select', 'insert', 'delete'" : "'select', 'insert'"
  const beginRun = `from pg_catalog.pg_proc where pronamespace = own.oid and proname = 'begin_run'
      and pg_catalog.oidvectortypes(proargtypes) = 'uuid, bytea, bigint, text, uuid, bigint, interval'`
  return `with own as (select oid from pg_catalog.pg_namespace where nspname = '${schema}')
  select 'comment' as needed, pg_catalog.obj_description(oid, 'pg_namespace') as granted from own
  union all select 'usage', pg_catalog.has_schema_privilege(oid, 'usage')::text from own
  union all select 'execute on begin_run', (
    select pg_catalog.has_function_privilege(oid, 'execute')::text ${beginRun}) from own
  union all select '${CONNECTION_CHECK}', (
    select (prosrc like '%client_connection_check_interval%')::text ${beginRun}) from own
  union all select privilege || ' on ' || name, (
    select pg_catalog.has_table_privilege(oid, privilege)::text
    from pg_catalog.pg_class where relnamespace = own.oid and relname = name)
  from own, unnest(array['idempotency', 'used_token']) name, unnest(array[${rights}]) privilege`
}

const CONNECTION_CHECK = 'connection check'

const UNCHECKED =
  'the server cannot check connections while it works: the lock of a process that died lasts as long as its statement'

/** Evaluates the rows of `schemaFacts`. */
function schemaFindings(schema: string, rows: readonly Row[]): PostgresFindings {
  const granted = new Map(rows.map((row) => [textIn(row, 'needed') ?? '', textIn(row, 'granted')]))
  const fault = (text: string): PostgresFindings => ({ faults: [text], warnings: [] })
  if (rows.length === 0) return fault(`the schema ${schema} is missing: run the SQL of migration()`)
  if (granted.get('comment') !== `${COMMENT}${SCHEMA_VERSION}`) {
    return fault(
      `the schema ${schema} is not of version ${SCHEMA_VERSION}: run the SQL of migration()`,
    )
  }
  const checksConnections = granted.get(CONNECTION_CHECK) !== 'false'
  for (const each of ['comment', CONNECTION_CHECK]) granted.delete(each)
  const missing = [...granted].filter(([, right]) => right === undefined)
  const objects = new Set(missing.map(([needed]) => needed.split(' ').at(-1)))
  const faults = [...objects].map(
    (object) => `${schema}.${object} is missing, or of another version: run the SQL of migration()`,
  )
  const refused = [...granted].filter(([, right]) => right === 'false').map(([needed]) => needed)
  if (refused.length > 0) {
    faults.push(`the role lacks in the schema ${schema}: ${refused.join(', ')}`)
  }
  return { faults, warnings: checksConnections ? [] : [UNCHECKED] }
}

const POOLED =
  'statements of a transaction do not stay together: the pooler must use transaction pooling, not statement pooling'

/**
 * Begins a run of no request, and looks whether the next statement is in the same transaction.
 *
 * @throws ServiceAuthError `unfit` if it is not, otherwise the client's error.
 */
async function tryRun<Tx>({
  runner,
  schema,
  statements,
  limits: { acquireMs },
}: StoreContext<Tx>): Promise<void> {
  const limits = { acquireMs, transactionMs: STATEMENT_MS }
  const { text } = statements.begin(recordIds(randomUUID(), randomUUID(), schema), limits)
  const work = async (tx: Tx): Promise<void> => {
    const begun = statements.readBeginResult(await runner.query(tx, text, []))
    const fence = begun.found === 'nothing' ? begun.fence : '0'
    await runner.query(tx, statements.assertInTransaction(fence).text, [])
  }
  try {
    await runner.transaction(work, limits)
  } catch (error) {
    const isPooled = isEndedByHandler(error) || messageIncludes(error, POOLING_MESSAGE)
    throw isPooled ? unfit([POOLED]) : error
  }
}

/** Part of pgbouncer's answer to `begin`. */
const POOLING_MESSAGE = 'statement pooling mode'

/** SQLSTATE classes of a server that cannot serve at present. */
const UNAVAILABLE_CLASSES = ['08', '53', '57', '58']

/** Reports a failure by its code alone, because messages of clients contain addresses, names and values. */
async function explainFailure<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ServiceAuthError) throw error
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
