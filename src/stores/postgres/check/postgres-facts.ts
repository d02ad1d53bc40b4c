import type { Row } from '../runner.js'
import { COMMENT, SCHEMA_VERSION } from '../schema.js'
import { BEGIN_RUN_TYPES, objectFaults, TABLES } from '../sql/object-faults.js'
import { textIn } from '../sql/read-columns.js'

/** SQL for the state and the settings of the server, as text columns. For servers that pass `foreignServer`. */
export const SERVER_FACTS = `select
  pg_catalog.pg_is_in_recovery()::text as standby,
  pg_catalog.current_setting('transaction_read_only') as readonly,
  pg_catalog.current_setting('synchronous_commit') as flush,
  (select count(*) from pg_catalog.pg_extension where extname = 'citus')::text as citus,
  (select count(*) from pg_catalog.pg_stat_replication
    where sync_state is null or state is distinct from 'backup')::text as standbys,
  (select count(*) from pg_catalog.pg_stat_replication
    where sync_state in ('sync', 'quorum', 'potential')
      or sync_state is null and pg_catalog.current_setting('synchronous_standby_names') <> ''
  )::text as awaited`

/** SQL that identifies the server. Every server with the protocol of Postgres answers it. */
export const SERVER_NAME = `select version() as version,
  current_setting('server_version_num') as number`

const OLDEST_NUMBER = 140_000
const OLDEST = 14

/** Servers with the protocol of Postgres whose advisory locks are missing, or local to a node. */
const RELATIVES: readonly (readonly [RegExp, string])[] = [
  [/^CockroachDB/i, 'CockroachDB'],
  [/-YB-|Yugabyte/i, 'YugabyteDB'],
]

/** Returns the faults in the server's kind or version. */
export function foreignServer(row: Row): readonly string[] {
  const version = textIn(row, 'version') ?? ''
  const relative = RELATIVES.find(([pattern]) => pattern.test(version))
  if (relative) return [`the server is ${relative[1]}, whose advisory locks do not hold everywhere`]
  return Number(textIn(row, 'number')) >= OLDEST_NUMBER
    ? []
    : [`the server is older than Postgres ${OLDEST}`]
}

/** `faults` are reasons not to use a server; `warnings` name what it may lose. */
export interface PostgresFindings {
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

/** Evaluates the row of `SERVER_FACTS`. */
export function serverFindings(row: Row): PostgresFindings & { readonly takesWrites: boolean } {
  const faults: string[] = []
  const isStandby = textIn(row, 'standby') === 'true'
  const takesWrites = !isStandby && textIn(row, 'readonly') === 'off'
  if (textIn(row, 'citus') !== '0') {
    faults.push('the database is one of Citus, whose advisory locks are local to a node')
  }
  if (isStandby) faults.push('the server is a standby: it is read-only')
  else if (!takesWrites) faults.push('transactions are read-only')
  if (textIn(row, 'flush') === 'off') {
    faults.push('synchronous_commit is off: a crash takes writes that were acknowledged')
  }
  return { faults, takesWrites, warnings: isAsynchronous(row) ? [ASYNCHRONOUS] : [] }
}

const ASYNCHRONOUS =
  'a standby is asynchronous: a failover to it takes writes that were acknowledged, with their records'

/**
 * Whether COMMIT does not wait for some standby. If the role may not see the state of a standby, the settings decide.
 */
function isAsynchronous(row: Row): boolean {
  const standbys = Number(textIn(row, 'standbys'))
  if (standbys === 0) return false
  return textIn(row, 'flush') === 'local' || Number(textIn(row, 'awaited')) < standbys
}

/**
 * SQL for the comment on a schema and the rights of the current role, as rows of texts: `needed`, and
 * `granted`, which is null if the object is missing.
 */
export function schemaFacts(schema: string, sweeps: boolean): string {
  const rights = sweeps ? ['select', 'insert', 'delete'] : ['select', 'insert']
  const queries = [
    `select 'comment' as needed, pg_catalog.obj_description(oid, 'pg_namespace') as granted
      from pg_catalog.pg_namespace where nspname = '${schema}'`,
    `select 'usage', pg_catalog.has_schema_privilege(oid, 'usage')::text
      from pg_catalog.pg_namespace where nspname = '${schema}'`,
    `select 'execute on begin_run', (select pg_catalog.has_function_privilege(p.oid, 'execute')::text
      from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
      where n.nspname = '${schema}' and p.proname = 'begin_run'
        and p.proargtypes::pg_catalog.text = '${BEGIN_RUN_TYPES}')`,
  ]
  for (const table of TABLES) {
    for (const right of rights) {
      queries.push(`select '${right} on ${table}', (
        select pg_catalog.has_table_privilege(c.oid, '${right}')::text
        from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = '${schema}' and c.relname = '${table}')`)
    }
  }
  return queries.join('\nunion all ')
}

/** Returns the faults that the rows of `schemaFacts` show. */
export function schemaFaults(schema: string, rows: readonly Row[]): readonly string[] {
  const granted = new Map(rows.map((row) => [textIn(row, 'needed'), textIn(row, 'granted')]))
  if (!granted.has('comment'))
    return [`the schema ${schema} is missing: run the SQL of migration()`]
  const comment = granted.get('comment')
  if (comment !== `${COMMENT}${SCHEMA_VERSION}`) {
    return [`the schema ${schema} is not of version ${SCHEMA_VERSION}: run the SQL of migration()`]
  }
  const objects = [...granted].filter(([needed]) => needed !== 'comment')
  const missing = objects.filter(([, right]) => right === undefined).map(([needed]) => needed)
  const refused = objects.filter(([, right]) => right === 'false').map(([needed]) => needed)
  const faults: string[] = []
  const missingObjects = new Set(missing.map((needed) => needed?.split(' ').at(-1)))
  for (const object of missingObjects) {
    faults.push(`${schema}.${object} is missing, or of another version: run the SQL of migration()`)
  }
  if (refused.length > 0) {
    faults.push(`the role lacks in the schema ${schema}: ${refused.join(', ')}`)
  }
  return faults
}

/**
 * SQL for the reasons not to trust the objects of a schema. Their owner may be a superuser, the owner of
 * the database, `schemaOwner`, the current role, or a role that it belongs to. A superuser does not belong
 * to other roles just because it is one. Before Postgres 15 every role could make others members of
 * itself, so there only memberships count that a superuser or the owner of the database granted.
 */
export function untrustedObjects(schema: string, schemaOwner: string | undefined): string {
  const databaseOwner = `(select datdba from pg_catalog.pg_database
      where datname OPERATOR(pg_catalog.=) pg_catalog.current_database())`
  const ownRoles = `
      with recursive own (role) as (
        select oid from pg_catalog.pg_roles where rolname OPERATOR(pg_catalog.=) current_user
        union select membership.roleid from own
          join pg_catalog.pg_auth_members membership on membership.member OPERATOR(pg_catalog.=) role
          left join pg_catalog.pg_roles giver on giver.oid OPERATOR(pg_catalog.=) membership.grantor
          where pg_catalog.current_setting('server_version_num')::integer OPERATOR(pg_catalog.>=) 150000
            or giver.rolsuper or giver.oid OPERATOR(pg_catalog.=) ${databaseOwner}
      ) select role from own`
  const named = ['pg_database_owner', ...(schemaOwner === undefined ? [] : [schemaOwner])]
  const isTrusted = `owner.rolsuper or owner.oid OPERATOR(pg_catalog.=) ${databaseOwner}
      or owner.rolname OPERATOR(pg_catalog.=) any (array[${named.map((name) => `'${name}'`)}])
      or owner.oid OPERATOR(pg_catalog.=) any (array(${ownRoles}))`
  return objectFaults(schema, isTrusted)
}
