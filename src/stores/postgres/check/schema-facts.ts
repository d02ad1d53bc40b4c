import type { Row } from '../runner.js'
import { COMMENT, SCHEMA_VERSION } from '../schema.js'
import { BEGIN_RUN_TYPES, objectFaults, TABLES } from '../sql/object-faults.js'
import { textIn } from '../sql/read-columns.js'

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
