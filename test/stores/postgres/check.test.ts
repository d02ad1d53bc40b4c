import { describe, expect, it } from 'vitest'
import { fromPg } from '../../../src/stores/postgres/adapters/pg.js'
import { checkPostgres, foreignServer, serverFindings } from '../../../src/stores/postgres/check.js'
import { migration } from '../../../src/stores/postgres/schema.js'
import { startPgbouncer } from '../../support/postgres/pgbouncer.js'
import { createDatabase, sharedPostgres } from '../../support/postgres/postgres-database.js'
import { contextOf, openPool } from './store-parts.js'

async function checkAt(url: string, sweeps = true) {
  const pool = openPool(url)
  try {
    return await checkPostgres(contextOf(fromPg(pool)), sweeps)
  } finally {
    await pool.end()
  }
}

const unfit = (message: string | RegExp) => ({
  name: 'ServiceAuthError',
  code: 'unfit',
  message: expect.stringMatching(message),
})

describe('a check', async () => {
  const server = await sharedPostgres()
  await server.query('create role app login')

  async function database(script = migration({ appRole: 'app', sweepRole: 'app' })) {
    const { name, url } = await createDatabase(server)
    await server.query(script, [], name)
    return { name, url, appUrl: server.urlFor(name, 'app') }
  }

  it('finds nothing where all is as it must be', async () => {
    const { appUrl } = await database()
    expect(await checkAt(appUrl)).toEqual([])
  })

  it.each([
    ['drop schema service_auth cascade', 'the schema service_auth is missing'],
    ["comment on schema service_auth is 'express-service-auth 3'", 'not of version 2'],
    ['comment on schema service_auth is null', 'not of version 2'],
    [
      'drop table service_auth.used_token',
      'service_auth.used_token is missing, or of another version',
    ],
    [
      'drop function service_auth.begin_run(uuid, bytea, bigint, text, uuid, bigint, interval)',
      'service_auth.begin_run is missing, or of another version',
    ],
    ['revoke usage on schema service_auth from app', 'lacks in the schema service_auth: usage'],
    [
      'revoke insert on service_auth.idempotency from app; revoke delete on service_auth.used_token from app',
      'insert on idempotency, delete on used_token',
    ],
    [
      'revoke execute on function service_auth.begin_run(uuid, bytea, bigint, text, uuid, bigint, interval) from app',
      'execute on begin_run',
    ],
    ["alter role app set synchronous_commit = 'off'", 'synchronous_commit is off'],
    ["alter role app set default_transaction_read_only = 'on'", 'transactions are read-only'],
  ])('refuses it after: %s', async (spoil, fault) => {
    const { name, appUrl } = await database()
    await server.query(spoil, [], name)
    try {
      await expect(checkAt(appUrl)).rejects.toMatchObject(unfit(fault))
    } finally {
      await server.query('alter role app reset all')
    }
  })

  it('wants no right to delete of a store that does not sweep', async () => {
    const { appUrl } = await database(migration({ appRole: 'app' }))
    expect(await checkAt(appUrl, false)).toEqual([])
    await expect(checkAt(appUrl)).rejects.toMatchObject(unfit('delete on idempotency'))
  })

  it('names all faults that it finds', async () => {
    const { name, appUrl } = await database()
    await server.query(
      "drop schema service_auth cascade; alter role app set synchronous_commit = 'off'",
      [],
      name,
    )
    const both = /synchronous_commit is off.*; the schema service_auth is missing/
    await expect(checkAt(appUrl)).rejects.toMatchObject(unfit(both))
    await server.query('alter role app reset all')
  })

  it('refuses a pooler that pools by statement, and takes one that pools by transaction', async () => {
    const { name } = await database()
    for (const poolMode of ['statement', 'transaction'] as const) {
      const pgbouncer = await startPgbouncer(server, { poolMode })
      const checked = checkAt(pgbouncer.urlFor(name, 'app'))
      if (poolMode === 'transaction') expect(await checked).toEqual([])
      else await expect(checked).rejects.toMatchObject(unfit('not statement pooling'))
      await pgbouncer.stop()
    }
  })

  it('warns of a server that cannot check connections, on which runs begin without', async () => {
    // A value that no server takes stands for a platform that does not take the setting.
    const script = migration({ appRole: 'app', sweepRole: 'app' })
    const refused = script.replace(
      "('client_connection_check_interval', '500ms'",
      "('client_connection_check_interval', 'none'",
    )
    expect(refused).not.toBe(script)
    const { appUrl } = await database(refused)
    expect(await checkAt(appUrl)).toEqual([expect.stringContaining('cannot check connections')])
  })

  it('says what is unreachable by its code alone', async () => {
    const [at, noDatabase] = [
      'postgres://app:hidden-word@127.0.0.1:1/x',
      server.urlFor('no_such', 'app'),
    ]
    for (const [url, code, message] of [
      [at, 'unavailable', 'Postgres is unreachable: ECONNREFUSED'],
      [noDatabase, 'unfit', 'Postgres must not be used: it refused a query with SQLSTATE 3D000'],
    ] as const) {
      await expect(checkAt(url)).rejects.toMatchObject({ code, message })
    }
  })
})

describe('what a server says of itself', () => {
  const OWN = {
    version: 'PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu',
    number: '150018',
  }
  it.each([
    ['', OWN, undefined],
    [
      'an old one',
      { version: 'PostgreSQL 13.22 on x86_64-pc-linux-gnu', number: '130022' },
      'older than Postgres 14',
    ],
    [
      'CockroachDB',
      {
        version:
          'CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)',
        number: '130000',
      },
      'CockroachDB',
    ],
    [
      'YugabyteDB',
      {
        version:
          'PostgreSQL 15.2-YB-2024.2.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6, 64-bit',
        number: '150002',
      },
      'YugabyteDB',
    ],
  ])('%s', (_name, row, fault) => {
    expect(foreignServer(row)).toEqual(fault && expect.stringContaining(fault))
  })

  const FACTS = {
    standby: 'false',
    readonly: 'off',
    flush: 'on',
    standbys: '0',
    awaited: '0',
  }
  it.each([
    [{}, [], 0],
    [{ standby: 'true', readonly: 'on' }, [expect.stringContaining('standby')], 0],
    [{ standbys: '1' }, [], 1],
    [{ standbys: '1', awaited: '1' }, [], 0],
    [{ standbys: '2', awaited: '1' }, [], 1],
    [{ standbys: '1', awaited: '1', flush: 'local' }, [], 1],
  ])('facts %j', (facts, faults, warnings) => {
    const found = serverFindings({ ...FACTS, ...facts })
    expect(found.faults).toEqual(faults)
    expect(found.warnings).toHaveLength(warnings)
  })
})
