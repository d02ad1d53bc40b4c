import { describe, expect, it } from 'vitest'
import { checkPostgres } from '../../../../src/stores/postgres/check/check-postgres.js'
import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'
import { type MigrationOptions, migration } from '../../../../src/stores/postgres/schema.js'
import { recordIds } from '../../../../src/stores/postgres/sql/record-ids.js'
import { createStatements } from '../../../../src/stores/postgres/sql/statements.js'
import { createDatabase, sharedPostgres } from '../../../support/postgres/postgres-database.js'
import { openPool, poolRunner } from '../pool-runner.js'

/** The function of the version before the one that locks a key once. */
const OLD_BEGIN_RUN = 'service_auth.begin_run(uuid, bytea, bigint, bigint, text, boolean)'
const BEGIN_RUN = 'service_auth.begin_run(uuid, bytea, bigint, text, boolean)'

const TRAP = `create function service_auth.trap() returns trigger language plpgsql
  as 'begin raise exception ''code of mallory runs as %'', current_user; end'`
const TRIGGER = `${TRAP}; create trigger stolen before insert on service_auth.idempotency
  for each row execute function service_auth.trap()`

describe.each([15, 18] as const)(
  'objects that another role has made, on Postgres %i',
  async (version) => {
    const server = await sharedPostgres(version)
    for (const role of ['app', 'mallory', 'deploy']) await server.query(`create role ${role} login`)

    /** A database in which others may make schemas. */
    async function openDatabase() {
      const { name } = await createDatabase(server)
      await server.query(`grant create on database ${name} to mallory, deploy`)
      async function as(role: string, text: string) {
        const pool = openPool(server.urlFor(name, role))
        try {
          return await pool.query(text)
        } finally {
          await pool.end()
        }
      }
      return {
        name,
        as,
        migrate: (
          role = 'postgres',
          options: MigrationOptions = { appRole: 'app', sweepRole: 'app' },
        ) => as(role, migration(options)),
        async check(role = 'app', schemaOwner?: string) {
          const pool = openPool(server.urlFor(name, role))
          const runner = poolRunner(pool) as TransactionRunner<never>
          const options = { schema: 'service_auth', schemaOwner, acquireMs: 2000, sweeps: true }
          return checkPostgres(runner, options).finally(() => pool.end())
        },
      }
    }

    const unfit = (message: string) => ({
      code: 'unfit',
      message: expect.stringContaining(message),
    })

    it.each(['postgres', 'deploy'])('a schema with all in it, refused to %s', async (role) => {
      const { as, migrate, check } = await openDatabase()
      await migrate('mallory', {})
      await as('mallory', TRIGGER)
      const before = await as(
        'postgres',
        "select relacl::text from pg_class where relname = 'idempotency'",
      )
      await expect(migrate(role)).rejects.toMatchObject({
        message: 'the schema service_auth belongs to mallory',
        hint: expect.stringContaining('run this as its owner'),
      })
      expect(
        (await as('postgres', "select relacl::text from pg_class where relname = 'idempotency'"))
          .rows,
      ).toEqual(before.rows)
      await as(
        'mallory',
        `grant usage on schema service_auth to app; grant all on all tables in schema service_auth to app;
      grant execute on function ${BEGIN_RUN} to app`,
      )
      await expect(check()).rejects.toMatchObject(unfit('schema service_auth belongs to mallory'))
      await expect(check('postgres')).rejects.toMatchObject(
        unfit('service_auth.begin_run belongs to mallory'),
      )
      await expect(check()).rejects.toMatchObject(
        unfit('service_auth.idempotency has the trigger stolen'),
      )
    })

    it('a schema whose owner has made the role of the app a member of itself', async () => {
      const { name, as, migrate, check } = await openDatabase()
      await migrate('mallory')
      const granted = as('mallory', 'grant mallory to app')
      // Since 15 a role may not do that.
      if (server.major >= 15) await expect(granted).rejects.toMatchObject({ code: '42501' })
      else await granted
      await expect(check()).rejects.toMatchObject(unfit('belongs to mallory'))
      await expect(migrate('app')).rejects.toThrow('belongs to mallory')
      await as('postgres', 'revoke mallory from app')
      // What a superuser has granted counts.
      await as('postgres', 'grant mallory to app')
      expect(await check()).toEqual([])
      await as('postgres', 'revoke mallory from app')
      expect(await check('app', 'mallory')).toEqual([])
      await as('postgres', `alter database ${name} owner to mallory`)
      expect(await check()).toEqual([])
    })

    it.each([
      [
        'a table',
        'create table service_auth.idempotency (id uuid primary key, fingerprint bytea not null, result bytea, single_use boolean not null, expires_at timestamptz not null)',
        'service_auth.idempotency belongs to mallory',
      ],
      [
        'a view',
        'create view service_auth.used_token as select null::uuid as id, now() as expires_at',
        /used_token/,
      ],
      [
        'a function of the same name',
        `create function service_auth.begin_run(uuid, bytea, text, text, boolean) returns text
        language sql as 'select ''code of mallory'''`,
        'service_auth.begin_run belongs to mallory',
      ],
      [
        'the function',
        `create function ${BEGIN_RUN} returns text language sql as 'select ''code of mallory'''`,
        'service_auth.begin_run belongs to mallory',
      ],
      [
        'what takes the name of an index',
        'create sequence service_auth.used_token_expires_at',
        'not as migration() makes it',
      ],
    ])('%s in a schema of the one who migrates', async (_name, text, message) => {
      const { as, migrate } = await openDatabase()
      await as(
        'postgres',
        'create schema service_auth; grant usage, create on schema service_auth to mallory',
      )
      await as('mallory', text)
      await expect(migrate()).rejects.toThrow(message)
      const { rows } = await as(
        'postgres',
        "select obj_description('service_auth'::regnamespace) as comment",
      )
      expect(rows).toEqual([{ comment: null }])
    })

    it.each([
      [TRIGGER, 'service_auth.idempotency has the trigger stolen'],
      [
        'create rule lost as on insert to service_auth.used_token do instead nothing',
        'service_auth.used_token has the rule lost',
      ],
      [
        'alter table service_auth.used_token enable row level security',
        'service_auth.used_token has row security',
      ],
      [
        'alter table service_auth.idempotency alter result set default now()::text::bytea',
        'idempotency is not as',
      ],
      [
        'alter table service_auth.idempotency add check (octet_length(result) > now()::text::int)',
        'idempotency is not as',
      ],
      ['create index on service_auth.used_token (lower(id::text))', 'used_token is not as'],
      [
        'create index on service_auth.used_token (id) where lower(id::text) > chr(1)',
        'used_token is not as',
      ],
      ['create unique index on service_auth.idempotency (fingerprint)', 'idempotency is not as'],
      ['create table stolen () inherits (service_auth.idempotency)', 'idempotency is not as'],
      [
        'alter table service_auth.idempotency drop constraint idempotency_pkey',
        'idempotency is not as',
      ],
      ['alter table service_auth.used_token set unlogged', 'used_token is not as'],
      [
        'create domain odd as bytea check (value is null); alter table service_auth.idempotency alter result type odd',
        'idempotency is not as',
      ],
      [
        'create table stolen (id uuid references service_auth.used_token)',
        'used_token has the trigger',
      ],
    ])('tables that are not as they were made, after: %s', async (text, message) => {
      const { as, migrate, check } = await openDatabase()
      await migrate()
      expect(await check()).toEqual([])
      await as('postgres', text)
      await expect(migrate()).rejects.toThrow(message)
      await expect(check()).rejects.toMatchObject(unfit(message))
    })

    it('a function of the same name that takes texts, which the store does not call', async () => {
      const { as, migrate, check } = await openDatabase()
      await migrate()
      await as('postgres', 'grant create, usage on schema service_auth to mallory')
      await as(
        'mallory',
        `create function service_auth.begin_run(uuid, bytea, text, text, boolean) returns text
        language plpgsql as 'begin raise exception ''code of mallory''; end'`,
      )
      await as(
        'mallory',
        'grant execute on function service_auth.begin_run(uuid, bytea, text, text, boolean) to app',
      )
      const opening = { transactionMs: 1000, checksConnection: false }
      const { text } = createStatements('service_auth').begin(recordIds('key', 'print'), opening)
      expect((await as('app', text)).rows).toEqual([{ begun: expect.stringMatching(/^\d+$/) }])
      await expect(check()).rejects.toMatchObject(
        unfit('service_auth.begin_run belongs to mallory'),
      )
    })

    it('are none where a role migrates what it has made', async () => {
      const { as, migrate, check } = await openDatabase()
      await migrate('deploy')
      await migrate('deploy')
      await expect(migrate('postgres')).rejects.toThrow('belongs to deploy')
      await as('postgres', `set role deploy; ${migration({ appRole: 'app', sweepRole: 'app' })}`)
      await expect(check()).rejects.toMatchObject(unfit('belongs to deploy'))
      expect(await check('app', 'deploy')).toEqual([])
      expect(await check('deploy')).toEqual([])
    })

    it('and a function of an older version, which is to be made again', async () => {
      const { as, migrate, check } = await openDatabase()
      await migrate()
      await as(
        'postgres',
        `drop function ${BEGIN_RUN};
      create function ${OLD_BEGIN_RUN} returns text language sql as 'select null';
      grant execute on function ${OLD_BEGIN_RUN} to app`,
      )
      const old =
        'service_auth.begin_run is missing, or of another version: run the SQL of migration()'
      await expect(check()).rejects.toMatchObject(unfit(old))
      await migrate()
      expect(await check()).toEqual([])
      // Processes of the older version still call it.
      expect((await as('postgres', `select '${OLD_BEGIN_RUN}'::regprocedure`)).rowCount).toBe(1)
    })
  },
)
