import pg, { type Client } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import type { Statement } from '../../../../src/stores/postgres/runner.js'
import { migration } from '../../../../src/stores/postgres/schema.js'
import {
  createStatements,
  isEndedByHandler,
  recordIds,
  tokenIds,
} from '../../../../src/stores/postgres/sql/statements.js'
import { sharedPostgres } from '../../../support/postgres/postgres-database.js'

const statements = createStatements('service_auth')
const OPENING = { transactionMs: 30_000 }
const KEEPING = { result: Buffer.from([0, 255, 39, 92]), retentionMs: 60_000 }
const GUARDS = [
  'statement_timeout',
  'idle_in_transaction_session_timeout',
  'client_connection_check_interval',
]

const POISONED_OPERATORS = [
  ['=', 'uuid'],
  ['=', 'bytea'],
  ['=', 'text'],
  ['=', 'int4'],
  ['=', 'xid8'],
  ['>', 'interval'],
  ['<', 'timestamptz'],
]

/** Whoever may make a schema, or a temporary table, can put these before what Postgres has. */
const POISON = `
  create schema poison;
  create function poison.fail() returns text language plpgsql as 'begin raise exception ''poison''; end';
  ${POISONED_OPERATORS.map(
    ([name, type], index) => `
      create function poison.compare_${index}(pg_catalog.${type}, pg_catalog.${type}) returns boolean
        language plpgsql as 'begin raise exception ''poison''; end';
      create operator poison.${name} (
        leftarg = pg_catalog.${type}, rightarg = pg_catalog.${type}, function = poison.compare_${index});`,
  ).join('')}
  create function poison.current_setting(text) returns text language sql as 'select poison.fail()';
  create function poison.set_config(text, text, boolean) returns text language sql as 'select poison.fail()';
  create function poison.concat_ws(text, variadic text[]) returns text language sql as 'select poison.fail()';
  create function poison.encode(bytea, text) returns text language sql as 'select poison.fail()';
  create function poison.pg_try_advisory_xact_lock(bigint) returns boolean language sql as 'select true';
  create function poison.pg_current_xact_id() returns text language sql as 'select poison.fail()';
  create function poison.clock_timestamp() returns timestamptz language sql as 'select poison.fail()::timestamptz';
  create domain poison.bytea as pg_catalog.int4;
  create domain pg_temp.uuid as pg_catalog.int4;
  create domain pg_temp.xid8 as pg_catalog.int4;
  create domain pg_temp.text as pg_catalog.int4;
  create domain pg_temp.bytea as pg_catalog.int4;
  create domain pg_temp.interval as pg_catalog.int4;
  create table pg_temp.idempotency (id int);
  create table pg_temp.used_token (id int);`

describe.each([15, 18] as const)('on Postgres %i', async (version) => {
  const server = await sharedPostgres(version)
  await server.query(migration())
  const clients: Client[] = []
  afterAll(() => Promise.all(clients.map((client) => client.end())))

  let keys = 0
  const nextIds = (fingerprint = 'f') => recordIds(`key ${++keys}`, fingerprint)
  const ask = async (client: Client, { text, values }: Statement) =>
    (await client.query(text, [...values])).rows

  async function connect(): Promise<Client> {
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }

  const open = async (
    client: Client,
    ids = nextIds(),
    opening: Parameters<typeof statements.begin>[1] = OPENING,
  ): Promise<ReturnType<typeof statements.readBeginResult>> =>
    statements.readBeginResult(await ask(client, statements.begin(ids, opening)))

  async function begin(client: Client, ids = nextIds()): Promise<string> {
    await client.query('begin')
    const opened = await open(client, ids)
    if (opened.found !== 'nothing') throw new Error(`found a ${opened.found}`)
    return opened.fence
  }

  describe('opened', () => {
    it('is as it is with any search_path and pg_temp', async () => {
      const [client, ids] = [await connect(), nextIds()]
      await client.query(POISON)
      await client.query('set search_path = pg_temp, poison, pg_catalog')
      // The poison works.
      await expect(client.query('select 1 = 1')).rejects.toThrow('poison')
      await client.query('begin')
      const token = { ids: tokenIds('begun'), ttlMs: 1000 }
      const opened = await open(client, ids, { ...OPENING, token })
      const fence = opened.found === 'nothing' ? opened.fence : ''
      await ask(client, statements.assertInTransaction(fence))
      await ask(client, statements.consume({ ids: tokenIds('poisoned'), ttlMs: 1000 }))
      await ask(client, statements.insertRecord(ids, { ...KEEPING, fence }))
      await client.query('commit')
      expect(statements.readRecord(await ask(client, statements.findRecord(ids)))).toMatchObject({
        isSame: true,
      })
      await ask(client, statements.awaitRun(ids, { waitMs: 100 }))
      await client.query(migration())
      await client.query('set search_path = pg_catalog; drop schema poison cascade; discard temp')
    })

    it.each([
      ['0', '30s'],
      ['5s', '5s'],
      ['2min', '30s'],
      ['1d', '30s'],
    ])('lowers bounds of %s to %s, and never raises them', async (before, after) => {
      const client = await connect()
      const bounds = GUARDS.slice(0, 2)
      for (const name of bounds) await client.query(`set ${name} = '${before}'`)
      await client.query('begin')
      await open(client)
      expect(await settings(client)).toEqual([after, after, '500ms'])
      await client.query('rollback')
      expect((await settings(client)).slice(0, 2)).toEqual([before, before])
    })

    it('leaves a more frequent check of the connection alone', async () => {
      const client = await connect()
      await client.query("set client_connection_check_interval = '100ms'; begin")
      await open(client)
      expect((await settings(client))[2]).toBe('100ms')
      await client.query('rollback')
    })
  })

  const settings = async (client: Client): Promise<string[]> => {
    const columns = GUARDS.map((name, index) => `current_setting('${name}') as s${index}`)
    return Object.values((await client.query(`select ${columns.join(', ')}`)).rows[0])
  }

  it('does not take other failures, nor a quoted statement, for a transaction that was ended', async () => {
    const [client, ids] = [await connect(), nextIds()]
    const fence = await begin(client, ids)
    const keep = statements.insertRecord(ids, { ...KEEPING, fence })
    await client.query('select 1 / 0').catch(() => {})
    const failed = await ask(client, keep).catch((error) => error)
    expect(failed.code).toBe('25P02')
    expect(isEndedByHandler(failed)).toBe(false)
    await client.query('rollback')
    await ask(client, statements.insertRecordSeparately(ids, KEEPING))
    const taken = await ask(client, statements.insertRecordSeparately(ids, KEEPING)).catch(
      (error) => error,
    )
    expect(taken.code).toBe('23505')
    expect(isEndedByHandler(taken)).toBe(false)
    expect(isEndedByHandler(new Error(`Failed query: ${keep.text}`, { cause: failed }))).toBe(false)
    const said = new Error('express-service-auth: transaction ended')
    expect(isEndedByHandler(said)).toBe(false)
  })

  it('gets what it kept past the type parsers of a client', async () => {
    const ids = nextIds()
    const types = {
      getTypeParser: (oid: number) => (text: string) => (oid === 25 ? text : null),
    } as never
    const client = new pg.Client({ connectionString: server.url, types })
    clients.push(client)
    await client.connect()
    await ask(client, statements.insertRecordSeparately(ids, KEEPING))
    const looked = statements.readRecord(await ask(client, statements.findRecord(ids)))
    expect(looked).toEqual({ isSame: true, result: KEEPING.result, run: undefined })
    await client.query('begin')
    expect(await open(client, ids)).toEqual({ found: 'record', record: looked })
    expect(
      statements.readConsumed(
        await ask(client, statements.consume({ ids: tokenIds('parsed'), ttlMs: 1 })),
      ),
    ).toBe(true)
    await client.query('rollback')
  })

  it.each([undefined, Buffer.alloc(0), Buffer.alloc(300_000, 'å')])(
    'keeps a result as it is, and none as none',
    async (result) => {
      const [client, ids] = [await connect(), nextIds()]
      await ask(client, statements.insertRecordSeparately(ids, { ...KEEPING, result }))
      const looked = statements.readRecord(await ask(client, statements.findRecord(ids)))
      expect(looked?.isSame).toBe(true)
      // `toEqual` takes seconds for so many bytes.
      const hex = (bytes?: Uint8Array) => bytes && Buffer.from(bytes).toString('hex')
      expect(hex(looked?.result)).toBe(hex(result))
    },
  )

  it('keeps records for a year, by the clock of the statement', async () => {
    const [client, ids] = [await connect(), nextIds()]
    const fence = await begin(client, ids)
    await client.query('select pg_sleep(0.05)')
    const retentionMs = 31_536_000_000
    await ask(client, statements.insertRecord(ids, { ...KEEPING, retentionMs, fence }))
    const { rows } = await client.query(
      `select expires_at - interval '31536000 seconds' - now() >= interval '50 ms' as later,
        expires_at - interval '31536000 seconds' <= clock_timestamp() as passed
        from service_auth.idempotency where id = $1`,
      [ids.id],
    )
    expect(rows).toEqual([{ later: true, passed: true }])
    await client.query('rollback')
  })

  it('does not wait for a token that another transaction has recorded', async () => {
    const [one, other, token] = [await connect(), await connect(), tokenIds('uncommitted')]
    const consume = async (client: Client) =>
      statements.readConsumed(await ask(client, statements.consume({ ids: token, ttlMs: 60_000 })))
    await one.query('begin')
    expect(await consume(one)).toBe(true)
    expect(await consume(one)).toBe(false)
    await other.query("set statement_timeout = '2s'")
    expect(await consume(other)).toBe(false)
    await one.query('rollback')
    expect(await consume(other)).toBe(true)
    expect(await consume(one)).toBe(false)
  })
})

it('puts nothing into a statement that is not its own', () => {
  const ids = recordIds('key', 'fingerprint')
  const hostile = "x'; drop table users; --"
  expect(() => createStatements(hostile)).toThrow(TypeError)
  for (const member of ['id', 'fingerprint', 'keyLock']) {
    const broken = { ...ids, [member]: hostile }
    expect(() => statements.begin(broken, OPENING)).toThrow()
  }
  expect(() => statements.assertInTransaction(hostile)).toThrow(TypeError)
  expect(() =>
    statements.insertRecordSeparately(ids, { ...KEEPING, retentionMs: Number.NaN }),
  ).toThrow(TypeError)
  expect(() => statements.consume({ ids: { id: hostile, lock: '1' }, ttlMs: 1 })).toThrow(TypeError)
})
