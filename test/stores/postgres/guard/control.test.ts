import type { RequestHandler } from 'express'
import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { hearIdempotency } from '../../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../../support/postgres/postgres-database.js'
import {
  createLedger,
  openCoupled,
  writeEffect,
} from '../../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)
await ledger.query('create procedure ends_it() language plpgsql as $$ begin commit; end $$')

type Work = (tx: PoolClient, request: Parameters<RequestHandler>[0]) => Promise<unknown>

/** A receiver whose handler writes, does this, writes once more, and says 201. */
function openWith(work: Work, more: { transactionMs?: number } = {}) {
  return openCoupled({
    url: ledger.url,
    pool: { max: 2 },
    store: more,
    handler: (store) => async (request, response) => {
      await writeEffect(store, request)
      const found = await work(store.transactionOf(request), request)
      response.status(201).json({ found: found ?? null })
    },
  })
}

it('a handler is refused release and end of its client', async () => {
  const receiver = await openWith(async (tx) => {
    const calls = [
      () => tx.release(),
      () => tx.release(true),
      () => (tx as unknown as { end(): unknown }).end(),
    ]
    const settled = await Promise.allSettled(calls.map(async (each) => each()))
    return settled.filter(({ status }) => status === 'rejected').length
  })
  const key = newKey()
  const answer = await call(receiver.port, { key })
  expect(answer.body.toString()).toBe('{"found":3}')
  expect(await ledger.effects(key)).toBe(1)
})

it.each(['do $$ begin commit; end $$', 'call ends_it()'])(
  'a handler cannot end its transaction by %j, and its error is no success',
  async (text) => {
    const receiver = await openWith(async (tx) => tx.query(text).catch(() => {}))
    const key = newKey()
    expect(await call(receiver.port, { key })).toMatchObject({ status: 500 })
    expect(receiver.errors).toMatchObject([{ code: 'commit_refused', cause: { code: '25P02' } }])
    expect(await ledger.effects(key)).toBe(0)
  },
)

describe('a handler that changes the session', () => {
  beforeAll(async () => {
    await ledger.query('create role clerk nologin')
    await ledger.query('grant select, insert on effect to clerk')
    await ledger.query('create schema elsewhere')
    await ledger.query(
      "create function elsewhere.current_setting(text) returns text language sql as 'select null::text'",
    )
    await ledger.query('create table elsewhere.idempotency (id int)')
  })

  it.each([
    ['the search_path', 'set local search_path = elsewhere, pg_catalog'],
    ['no search_path', "select set_config('search_path', '', true)"],
    ['the role, and back', 'set local role clerk; reset role'],
    [
      'everything else',
      `set local lock_timeout = '1ms'; set local statement_timeout = 0;
       set local idle_in_transaction_session_timeout = 0; set local bytea_output = 'escape';
       set local datestyle = 'SQL, DMY'; set local timezone = 'Asia/Tokyo';
       set local intervalstyle = 'sql_standard'; set local standard_conforming_strings = off;
       set local synchronous_commit = off; set constraints all deferred`,
    ],
  ])('%s', async (_what, text) => {
    const receiver = await openWith((tx) => tx.query(text))
    const key = newKey()
    expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
    expect((await call(receiver.port, { key })).headers['idempotent-replayed']).toEqual(['true'])
    expect(await ledger.effects(key)).toBe(1)
    const [row] = await ledger.query<{ left_over: number }>(
      'select extract(epoch from expires_at - now())::int as left_over from service_auth.idempotency order by expires_at desc limit 1',
    )
    expect(row?.left_over).toBeGreaterThan(86_000)
  })

  it('a role without grants is commit_refused; with them it works', async () => {
    const receiver = await openWith((tx) => tx.query('set local role clerk'))
    const key = newKey()
    expect(await call(receiver.port, { key })).toMatchObject({ status: 500 })
    expect(receiver.errors).toMatchObject([{ code: 'commit_refused', cause: { code: '42501' } }])
    expect(await ledger.effects(key)).toBe(0)
    await ledger.query('grant usage on schema service_auth to clerk')
    await ledger.query('grant insert on service_auth.idempotency to clerk')
    expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
    expect(await ledger.effects(key)).toBe(1)
  })

  it('a statement that outlasts transactionMs, its own bounds taken off', async () => {
    const events = hearIdempotency()
    const receiver = await openWith(
      async (tx) => {
        await tx.query('set local statement_timeout = 0')
        await tx.query('select pg_sleep(3)')
      },
      { transactionMs: 150 },
    )
    const key = newKey()
    const start = performance.now()
    expect(await call(receiver.port, { key })).toMatchObject({ status: 503 })
    expect(performance.now() - start).toBeLessThan(2500)
    expect(events.at(-1)).toMatchObject({ reason: 'timed_out', status: 503 })
    expect(await ledger.effects(key)).toBe(0)
  })
})
