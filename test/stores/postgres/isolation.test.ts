import { Client } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import {
  type CoupledOptions,
  createLedger,
  type Ledger,
  openCoupled,
  writeEffect,
} from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()

const LEVELS = ['read committed', 'repeatable read', 'serializable'] as const
const WAYS = LEVELS.flatMap((level) => [
  { level, by: 'the option' },
  { level, by: 'the server' },
])

/** A trigger that acts at COMMIT: where an answer is already held back. */
const TABLES = `
  create table stock (item text primary key, left_over int);
  insert into stock values ('book', 1000);
  create function take_one() returns trigger language plpgsql as
    $$ begin update public.stock set left_over = left_over - 1; return null; end $$;
  create table parcel (item text);
  create constraint trigger taken after insert on parcel deferrable initially deferred
    for each row execute function take_one()`

/** Somebody else's transaction that has changed the stock and does not end. */
async function holdStock(url: string): Promise<{ letGo(): Promise<void> }> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('begin; update stock set left_over = left_over - 1')
  return { letGo: () => client.end() }
}

describe.each(WAYS)('$level, by $by', ({ level, by }) => {
  let ledger: Ledger
  beforeAll(async () => {
    ledger = await createLedger(postgres)
    await ledger.query(TABLES)
    if (by === 'the option') return
    const name = new URL(ledger.url).pathname.slice(1)
    await ledger.query(`alter database ${name} set default_transaction_isolation = '${level}'`)
  })
  const store = by === 'the option' ? { store: { isolation: level } } : {}
  const open = (handler: CoupledOptions['handler']) =>
    openCoupled({ url: ledger.url, ...store, handler })

  it('runs and replays; the handler has this level and cannot change it', async () => {
    const receiver = await open((own) => async (request, response) => {
      const tx = own.transactionOf(request)
      const { rows } = await tx.query('show transaction_isolation')
      await writeEffect(own, request)
      response.status(201).json(rows[0])
    })
    const key = newKey()
    const first = await call(receiver.port, { key })
    expect(JSON.parse(first.body.toString())).toEqual({ transaction_isolation: level })
    const second = await call(receiver.port, { key })
    expect(second.headers['idempotent-replayed']).toEqual(['true'])
    expect(second.body).toEqual(first.body)
    expect(await ledger.effects(key)).toBe(1)

    const other = level === 'serializable' ? 'read committed' : 'serializable'
    const changing = await open((own) => async (request, response) => {
      const tx = own.transactionOf(request)
      const refused = tx.query(`set transaction isolation level ${other}`)
      const code = await refused.catch((error: { code: string }) => error.code)
      response.status(503).set('X-State', String(code)).end()
    })
    const refused = await call(changing.port, { key: newKey() })
    expect(refused.headers['x-state']).toEqual(['25001'])
  })

  // How the level is set makes no other difference.
  if (by === 'the server') return

  it('a conflict at COMMIT is the 503 with Retry-After: 0, and a retry runs', async () => {
    const events = hearIdempotency()
    let isDisturbed = true
    const receiver = await open((own) => async (request, response) => {
      const tx = own.transactionOf(request)
      await tx.query('select * from stock')
      await writeEffect(own, request)
      await tx.query("insert into parcel values ('book')")
      if (isDisturbed && level !== 'read committed') {
        await ledger.query('update stock set left_over = left_over - 1')
      }
      // There it waits instead of failing, unless it is told not to.
      await tx.query("set local lock_timeout = '20ms'")
      response.status(201).set('X-Order', '1').json({ order: 1 })
    })
    const key = newKey()
    const attempt = () => call(receiver.port, { key })
    const blocked =
      level === 'read committed' ? await holdStock(ledger.url) : { letGo: async () => {} }
    const lost = await attempt()
    await blocked.letGo()
    expect(lost).toMatchObject({
      status: 503,
      problem: 'about:blank',
      headers: { 'retry-after': ['0'] },
    })
    expect(lost.headers['x-order']).toBeUndefined()
    const sqlState = level === 'read committed' ? '55P03' : '40001'
    expect(events.at(-1)).toMatchObject({ outcome: 'undecided', reason: 'conflict', sqlState })
    expect(await ledger.effects(key)).toBe(0)
    isDisturbed = false
    expect(await attempt()).toMatchObject({ status: 201, headers: { 'x-order': ['1'] } })
    expect(await ledger.effects(key)).toBe(1)
  })

  it('a run that another has overtaken answers with the winner’s answer', async () => {
    const events = hearIdempotency()
    let isOvertaken = false
    let status = 201
    // Without its lock, as a run may be whose connection is taken for dead.
    const overtake = `begin isolation level ${level}; select from service_auth.idempotency;
      insert into service_auth.idempotency table winner; commit`
    const receiver = await open((own) => async (request, response) => {
      await writeEffect(own, request)
      if (isOvertaken) await ledger.query(overtake)
      const by = isOvertaken ? 'late' : 'winner'
      response.status(status).set('X-By', by).json({ by })
    })
    const race = async (body: string, lateStatus = 201) => {
      const key = newKey()
      isOvertaken = false
      status = 201
      await ledger.query('delete from service_auth.idempotency; drop table if exists winner')
      await call(receiver.port, { key, body: '{"a":1}' })
      await ledger.query('create table winner as table service_auth.idempotency')
      await ledger.query('delete from service_auth.idempotency')
      isOvertaken = true
      status = lateStatus
      const late = await call(receiver.port, { key, body })
      if (level !== 'serializable' || status !== 201) return { key, late }
      // There the server tells of a conflict before it looks for the row, so that the caller asks again.
      expect(late).toMatchObject({ status: 503, headers: { 'retry-after': ['0'] } })
      return { key, late: await call(receiver.port, { key, body }) }
    }
    const same = await race('{"a":1}')
    expect(same.late).toMatchObject({ status: 201, headers: { 'idempotent-replayed': ['true'] } })
    expect(same.late.body.toString()).toBe('{"by":"winner"}')
    expect(same.late.headers['x-by']).toBeUndefined()
    expect(await ledger.effects(same.key)).toBe(1)

    const other = await race('{"a":2}')
    expect(other.late).toMatchObject({ status: 422, problem: 'idempotency-key-reused' })
    expect(await ledger.effects(other.key)).toBe(1)

    // A refusal has written nothing, whoever has won.
    const refused = await race('{"a":2}', 404)
    expect(refused.late).toMatchObject({ status: 404, headers: { 'x-by': ['late'] } })
    expect(await ledger.effects(refused.key)).toBe(1)
    expect(events.filter(({ reason }) => reason === 'conflict')).toHaveLength(3)
  })
})
