/** The OIDs of uuid, bytea, bigint, text and boolean, which are the same on every server. */
export const BEGIN_RUN_TYPES = '2950 17 20 25 16'

/** Each column: its name, the OID of its type, and whether it is `not null`. */
const COLUMNS: Readonly<Record<string, string>> = {
  idempotency: 'id 2950 t, fingerprint 17 t, result 17 f, single_use 16 t, expires_at 1184 t',
  used_token: 'id 2950 t, expires_at 1184 t',
}

export const TABLES: readonly string[] = Object.keys(COLUMNS)

const EQUALS = 'OPERATOR(pg_catalog.=)'
const DIFFERS = 'OPERATOR(pg_catalog.<>)'

/**
 * SQL that selects, as texts in the column `fault`, the reasons not to trust the objects of a schema.
 * Another role may have created any of them first: that role's code in a trigger, a rule, a default, a check or
 * an index would run with the rights of the role that writes, and its view or child table would choose
 * which records are read. A table must therefore be exactly as `migration` creates it. `isTrusted` is SQL
 * on a row `owner` of `pg_roles`. All names are qualified, because the caller may have any search path;
 * `in` cannot be qualified, so it is not used.
 */
export function objectFaults(schema: string, isTrusted: string): string {
  const queries = [
    owners(schema, isTrusted),
    ...TABLES.flatMap((name) => tableFaults(schema, name)),
  ]
  return queries.join('\n  union all ')
}

const owners = (schema: string, isTrusted: string): string => `\
select pg_catalog.concat(thing, ' belongs to ', owner.rolname) as fault
    from (
      select 'schema ${schema}' as thing, nspowner as role
        from pg_catalog.pg_namespace where nspname ${EQUALS} '${schema}'
      union all select pg_catalog.concat('${schema}.', relname), relowner
        from pg_catalog.pg_class where relnamespace ${EQUALS} ${oidOf(schema)}
          and relname ${EQUALS} any (array[${TABLES.map((name) => `'${name}'`)}])
      union all select '${schema}.begin_run', proowner
        from pg_catalog.pg_proc where pronamespace ${EQUALS} ${oidOf(schema)} and proname ${EQUALS} 'begin_run'
    ) things join pg_catalog.pg_roles owner on owner.oid ${EQUALS} role
    where not (${isTrusted})`

function tableFaults(schema: string, name: string): readonly string[] {
  const table = `(select oid from pg_catalog.pg_class
      where relnamespace ${EQUALS} ${oidOf(schema)} and relname ${EQUALS} '${name}')`
  const faults = (fault: string, from: string): string =>
    `select pg_catalog.concat('${schema}.${name} ', ${fault}) from pg_catalog.${from}`
  return [
    faults("'has the trigger ', tgname", `pg_trigger where tgrelid ${EQUALS} ${table}`),
    faults("'has the rule ', rulename", `pg_rewrite where ev_class ${EQUALS} ${table}`),
    faults("'has row security'", `pg_class where oid ${EQUALS} ${table} and relrowsecurity`),
    `${faults("'is not as migration() makes it'", 'pg_class own')}
    where oid ${EQUALS} ${table} and (relkind ${DIFFERS} 'r' or relpersistence ${DIFFERS} 'p'
      or exists (select from pg_catalog.pg_attrdef where adrelid ${EQUALS} own.oid)
      or exists (select from pg_catalog.pg_inherits
        where inhparent ${EQUALS} own.oid or inhrelid ${EQUALS} own.oid)
      or exists (select from pg_catalog.pg_constraint
        where conrelid ${EQUALS} own.oid and contype ${DIFFERS} all (array['p', 'n']::pg_catalog."char"[]))
      or exists (select from pg_catalog.pg_index where indrelid ${EQUALS} own.oid
        and (indexprs is not null or indpred is not null or indisunique and not indisprimary))
      or not exists (select from pg_catalog.pg_index where indrelid ${EQUALS} own.oid
        and indisprimary and indisvalid and indimmediate and indkey::pg_catalog.text ${EQUALS} '1')
      or exists (select from pg_catalog.pg_class other where relnamespace ${EQUALS} own.relnamespace
        and relname ${EQUALS} '${name}_expires_at' and not exists (select from pg_catalog.pg_index
          where indexrelid ${EQUALS} other.oid and indrelid ${EQUALS} own.oid))
      or (select pg_catalog.string_agg(pg_catalog.concat_ws(' ', attname, atttypid, attnotnull), ', ' order by attnum)
        from pg_catalog.pg_attribute where attrelid ${EQUALS} own.oid
          and attnum OPERATOR(pg_catalog.>) 0 and not attisdropped) ${DIFFERS} '${COLUMNS[name]}')`,
  ]
}

const oidOf = (schema: string): string =>
  `(select oid from pg_catalog.pg_namespace where nspname ${EQUALS} '${schema}')`
