import { setTimeout as delay } from 'node:timers/promises'
import { type CoupledIdempotencyOptions, requireSingleUse } from 'express-service-auth'
import { fromPg, migration, postgresStore } from 'express-service-auth/postgres'
import { Pool, type PoolClient } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import {
  type CoupledOptions,
  createLedger,
  openCoupled,
  writeEffect,
} from '../../support/receiver/coupled-receiver.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../../support/receiver/express-majors.js'
import { type Answer, call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { fullDiskUnder } from './full-disk.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const writes: CoupledOptions['handler'] = (store) => async (request, response) => {
  await writeEffect(store, request)
  response.status(201).json({})
}

/** Without a limit it would not be over at all. */
const OVER_WITHIN_MS = 10_000

const takeAll = (pool: Pool): Promise<PoolClient[]> =>
  Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()))

/** Makes all of its connections, which may take longer than a request is willing to wait. */
async function fill(pool: Pool): Promise<void> {
  for (const client of await takeAll(pool)) client.release()
}

describe.each([1, 3, 10])('a pool of %i', (max) => {
  it('that its handlers use up: 503 in time, and it serves again', async () => {
    const events = hearIdempotency()
    let isGreedy = true
    let missing = max
    let haveAll = (): void => {}
    const allHave = new Promise<void>((resolve) => {
      haveAll = resolve
    })
    const receiver = await openCoupled({
      url: ledger.url,
      pool: { max },
      store: { acquireMs: 500, transactionMs: 2000 },
      handler: (store) => async (request, response) => {
        await writeEffect(store, request)
        missing -= 1
        if (missing === 0) haveAll()
        // The mistake: it waits for a second connection while it has the first.
        if (isGreedy) await allHave.then(() => receiver.pool.query('select 1'))
        response.status(201).json({})
      },
    })
    await fill(receiver.pool)
    const keys = Array.from({ length: 2 * max }, newKey)
    const attempt = (key: string) => call(receiver.port, { key })
    const start = performance.now()
    const holding = keys.slice(0, max).map(attempt)
    await allHave
    const waiting = keys.slice(max).map(attempt)
    const answers = await Promise.all([...holding, ...waiting])
    for (const [at, key] of keys.entries()) {
      const { status, headers } = answers[at] as Answer
      // As the first gives up, another may get the connection that it waits for.
      expect([201, 503]).toContain(status)
      expect(headers['retry-after']).not.toEqual(['0'])
      expect(await ledger.effects(key)).toBe(status === 201 ? 1 : 0)
    }
    expect(performance.now() - start).toBeLessThan(OVER_WITHIN_MS)
    const undecided = events.filter(({ outcome }) => outcome === 'undecided')
    const reasons = new Set(undecided.map(({ reason }) => reason))
    expect(reasons).toContain('timed_out')

    isGreedy = false
    await expect.poll(() => receiver.pool.waitingCount).toBe(0)
    for (const key of keys) {
      await expect.poll(async () => (await attempt(key)).status).toBe(201)
    }
    for (const key of keys) expect(await ledger.effects(key)).toBe(1)
    expect(receiver.pool.totalCount).toBeLessThanOrEqual(max)
    expect(receiver.pool.idleCount).toBe(receiver.pool.totalCount)
  })

  it('that is used up by others: 503 after acquireMs, and nothing is run later', async () => {
    const receiver = await openCoupled({
      url: ledger.url,
      pool: { max },
      store: { acquireMs: 500 },
      handler: writes,
    })
    await fill(receiver.pool)
    await call(receiver.port, { key: newKey() })
    const taken = await takeAll(receiver.pool)
    const key = newKey()
    const start = performance.now()
    expect(await call(receiver.port, { key })).toMatchObject({ status: 503 })
    expect(performance.now() - start).toBeLessThan(OVER_WITHIN_MS)
    for (const client of taken) client.release()
    await delay(30)
    expect(receiver.handled).toBe(1)
    expect(await ledger.effects(key)).toBe(0)
    expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
  })
})

it('a pool that ends under a request: that one commits, later ones get the 503', async () => {
  let letGo = (): void => {}
  let reach = (): void => {}
  const reached = new Promise<void>((resolve) => {
    reach = resolve
  })
  const pool = new Pool({ connectionString: ledger.url })
  const store = postgresStore(fromPg(pool), { sweepSeconds: false })
  const receiver = await openOrders({
    express: EXPRESS_MAJORS[1]?.express as ExpressModule,
    store,
    async handler(request, response) {
      await writeEffect(store, request)
      reach()
      await new Promise<void>((resolve) => {
        letGo = resolve
      })
      response.status(201).json({})
    },
  })
  onTestFinished(() => receiver.close())
  const key = newKey()
  const running = call(receiver.port, { key })
  await reached
  const ended = pool.end()
  letGo()
  expect(await running).toMatchObject({ status: 201 })
  await ended
  expect(await ledger.effects(key)).toBe(1)
  expect(await call(receiver.port, { key })).toMatchObject({ status: 503 })
  await expect(store.check()).rejects.toMatchObject({ code: 'unavailable' })
})

it('a store that is closed under a request: that one commits, later ones get the 503', async () => {
  const receiver = await openCoupled({
    url: ledger.url,
    handler: (store) => async (request, response) => {
      store.close()
      await writeEffect(store, request)
      response.status(201).json({})
    },
  })
  const key = newKey()
  expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
  expect(await call(receiver.port, { key })).toMatchObject({ status: 503 })
  expect(await ledger.effects(key)).toBe(1)
})

describe('resources that run out are the 503', () => {
  it('the disk, at the record, and then it runs', async () => {
    const full = await createLedger(postgres)
    const events = hearIdempotency()
    const receiver = await openCoupled({ url: full.url, handler: writes })
    const key = newKey()
    const disk = await fullDiskUnder(full, 'service_auth.idempotency')
    expect(await call(receiver.port, { key })).toMatchObject({ status: 503 })
    expect(events.at(-1)).toMatchObject({ reason: 'store_unavailable', sqlState: '53100' })
    await disk.freeUp()
    expect(await full.effects(key)).toBe(0)
    // Connections keep the file that they have opened.
    const fresh = await openCoupled({ url: full.url, handler: writes })
    expect(await call(fresh.port, { key })).toMatchObject({ status: 201 })
    expect(await full.effects(key)).toBe(1)
  })

  it('connections of the server', async () => {
    const limited = await createLedger(postgres)
    const name = new URL(limited.url).pathname.slice(1)
    await limited.query('create role limited login')
    await limited.query(migration({ appRole: 'limited' }))
    await limited.query(`alter database ${name} connection limit 0`)
    const events = hearIdempotency()
    const url = urlFor(limited.url, 'limited')
    const receiver = await openCoupled({ url, handler: writes })
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 503 })
    expect(events).toMatchObject([{ reason: 'store_unavailable', sqlState: '53300', status: 503 }])
    await expect(receiver.store.check()).rejects.toMatchObject({ code: 'unavailable' })
  })
})

function urlFor(url: string, role: string): string {
  const changed = new URL(url)
  changed.username = role
  return changed.href
}

describe('least grants', () => {
  /** A database whose app may do what it must, and no more. */
  async function openLeast() {
    const least = await createLedger(postgres)
    const role = `app_${new URL(least.url).pathname.slice(6, 20)}`
    await least.query(`create role ${role} login`)
    await least.query(migration({ appRole: role }))
    await least.query(`grant insert on effect to ${role}`)
    await least.query(`grant usage on effect_id_seq to ${role}`)
    return { least, role, url: urlFor(least.url, role) }
  }

  it.each([
    ['in batches', true],
    ['a statement at a time', false],
  ])('usage, execute, select and insert run everything, %s', async (_how, inBatches) => {
    const { least, url } = await openLeast()
    const pool = new Pool({ connectionString: url })
    const { batch, commitWith, ...single } = fromPg(pool)
    const runner = inBatches ? { ...single, batch, commitWith } : single
    const store = postgresStore(runner as ReturnType<typeof fromPg<PoolClient>>, {
      sweepSeconds: false,
    })
    await store.check()
    const statuses = new Map<string, number>()
    const options: Partial<CoupledIdempotencyOptions> = { maxResponseBytes: 100 }
    const receiver = await openOrders({
      express: EXPRESS_MAJORS[1]?.express as ExpressModule,
      store,
      options,
      inner: [requireSingleUse({ store, within: 'transaction' })],
      async handler(request, response) {
        await writeEffect(store, request)
        const status = statuses.get(request.idempotency?.key ?? '') ?? 201
        response.status(status).send(status === 202 ? 'x'.repeat(200) : 'short')
      },
    })
    onTestFinished(async () => {
      await receiver.close()
      store.close()
      await pool.end()
    })
    for (const [status, effects, retry] of [
      [201, 1, 201],
      [202, 1, 409],
      [404, 0, 404],
      [500, 0, 500],
    ] as const) {
      const key = newKey()
      statuses.set(key, status)
      expect(await call(receiver.port, { key })).toMatchObject({ status })
      expect(await call(receiver.port, { key })).toMatchObject({ status: retry })
      expect(await least.effects(key)).toBe(effects)
    }
    // Nothing that is kept can be overwritten or taken away by who serves requests.
    for (const text of [
      'update service_auth.idempotency set result = null',
      'delete from service_auth.idempotency',
      'truncate service_auth.used_token',
    ]) {
      await expect(pool.query(text)).rejects.toMatchObject({ code: '42501' })
    }
  })

  it.each<[string, (role: string) => string, number, RegExp]>([
    ['a table', () => 'drop table service_auth.idempotency', 503, /idempotency/],
    ['the schema', () => 'drop schema service_auth cascade', 503, /schema service_auth/],
    [
      'the right to look',
      (role) => `revoke select on service_auth.idempotency from ${role}`,
      503,
      /select/,
    ],
    ['usage', (role) => `revoke usage on schema service_auth from ${role}`, 503, /usage/],
    // The handler has run by then, and what it has written is undone.
    [
      'the right to add',
      (role) => `revoke insert on service_auth.idempotency from ${role}`,
      500,
      /insert/,
    ],
  ])('without %s', async (_what, text, status, named) => {
    const { least, role, url } = await openLeast()
    await least.query(text(role))
    const receiver = await openCoupled({ url, handler: writes })
    const key = newKey()
    expect(await call(receiver.port, { key })).toMatchObject({ status })
    expect(await least.effects(key)).toBe(0)
    await expect(receiver.store.check()).rejects.toMatchObject({
      code: 'unfit',
      message: expect.stringMatching(named),
    })
  })

  it('a schema of another version is named, and none is changed by requests', async () => {
    const { least, url } = await openLeast()
    await least.query("comment on schema service_auth is 'express-service-auth 2'")
    const receiver = await openCoupled({ url, handler: writes })
    await expect(receiver.store.check()).rejects.toThrow(/version/)
    await least.query("comment on schema service_auth is 'express-service-auth 0'")
    await expect(receiver.store.check()).rejects.toThrow(/version/)
  })
})
