import { lazy, optionsObject, parseOptions } from '../../base/options.js'
import { roleName, schemaName } from './postgres-options.js'
import { DEFAULT_SCHEMA, integerLiteral, quotedSchema } from './sql/literals.js'
import { createBeginRun, schemaLock } from './sql/statements.js'

/** Options of `migration`. All names match `[a-z_][a-z0-9_]{0,62}`. */
export interface MigrationOptions {
  /** The schema of the tables. Default: `service_auth`. */
  readonly schema?: string | undefined
  /** The role that serves requests: it may read and add records. Default: none. */
  readonly appRole?: string | undefined
  /** The role that sweeps: it may delete rows. It may be the same as `appRole`. Default: none. */
  readonly sweepRole?: string | undefined
}

/** The comment on a schema of this package, up to its version number. */
export const COMMENT = 'express-service-auth '

/** The version of the tables and the function that this code works with. */
export const SCHEMA_VERSION = 2

const OPTIONS = lazy(() =>
  optionsObject({
    schema: schemaName().default(DEFAULT_SCHEMA),
    appRole: roleName().optional(),
    sweepRole: roleName().optional(),
  }),
)

/**
 * Returns SQL that creates the tables and the function, and grants the roles the rights they need. It is one
 * statement that does everything or nothing, inside or outside a transaction, and may be run again. It
 * refuses a schema of another version, and one that is not of this package. Run it as the owner of the schema.
 *
 * @throws TypeError if a name does not match `[a-z_][a-z0-9_]{0,62}`.
 *
 * @example
 * ```ts
 * import { migration } from 'express-service-auth/postgres'
 * import { Pool } from 'pg'
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
 * await pool.query(migration())
 * await pool.end()
 * ```
 */
export function migration(options: MigrationOptions = {}): string {
  const { schema, appRole, sweepRole } = parseOptions('migration', OPTIONS, options)
  const name = quotedSchema(schema)
  const parts = [start(schema), tables(name), createBeginRun(name), rights(name)]
  if (appRole !== undefined) parts.push(appRights(name, `"${appRole}"`))
  if (sweepRole !== undefined) parts.push(sweepRights(name, `"${sweepRole}"`))
  return `${parts.join('\n')}end\n$migration$;\n`
}

const start = (schema: string): string => `\
-- What express-service-auth keeps in Postgres: version ${SCHEMA_VERSION} of the schema ${schema}. May be run again.
do $migration$
declare
  found pg_catalog.text;
begin
  perform pg_catalog.pg_advisory_xact_lock(${integerLiteral(schemaLock('migration', schema))});
  found := pg_catalog.obj_description(
    pg_catalog.to_regnamespace('${schema}')::pg_catalog.oid, 'pg_namespace');
  if found is not null and found OPERATOR(pg_catalog.!~) '^${COMMENT}[0-9]+$' then
    raise exception 'the schema ${schema} is not one of express-service-auth';
  end if;
  if found OPERATOR(pg_catalog.<>) '${COMMENT}${SCHEMA_VERSION}' then
    raise exception 'the schema ${schema} is of version % of express-service-auth, and this is version ${SCHEMA_VERSION}',
      pg_catalog.substr(found, ${COMMENT.length + 1})
      using hint = 'Drop the schema once its records have expired, or give migration() and postgresStore() another one.';
  end if;
  if pg_catalog.to_regnamespace('${schema}') is null then
    create schema ${quotedSchema(schema)};
  end if;
  comment on schema ${quotedSchema(schema)} is '${COMMENT}${SCHEMA_VERSION}';
`

const tables = (schema: string): string => `\
  create table if not exists ${schema}.idempotency (
    id pg_catalog.uuid primary key,
    fingerprint pg_catalog.bytea not null,
    result pg_catalog.bytea,
    run pg_catalog.xid8,
    expires_at timestamp with time zone not null
  ) with (autovacuum_vacuum_scale_factor = 0.02);
  create index if not exists idempotency_expires_at on ${schema}.idempotency (expires_at);

  create table if not exists ${schema}.used_token (
    id pg_catalog.uuid primary key,
    expires_at timestamp with time zone not null
  ) with (autovacuum_vacuum_scale_factor = 0.02);
  create index if not exists used_token_expires_at on ${schema}.used_token (expires_at);
`

const FUNCTION =
  'begin_run(pg_catalog.uuid, pg_catalog.bytea, bigint, pg_catalog.text, pg_catalog.uuid, bigint, pg_catalog.interval)'

const rights = (schema: string): string => `\
  revoke all on schema ${schema} from public;
  revoke all on ${schema}.idempotency, ${schema}.used_token from public;
  revoke all on function ${schema}.${FUNCTION} from public;
`

const appRights = (schema: string, role: string): string => `\
  grant usage on schema ${schema} to ${role};
  grant execute on function ${schema}.${FUNCTION} to ${role};
  grant select, insert on ${schema}.idempotency, ${schema}.used_token to ${role};
`

const sweepRights = (schema: string, role: string): string => `\
  grant usage on schema ${schema} to ${role};
  grant select (ctid, expires_at), delete on ${schema}.idempotency, ${schema}.used_token to ${role};
`
