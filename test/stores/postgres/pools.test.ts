import { fromPg, migration, postgresStore } from 'express-service-auth/postgres'
import { Pool } from 'pg'
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
import { call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { withResolvers } from '../../support/with-resolvers.js'
import { fullDiskUnder } from './full-disk.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const writes: CoupledOptions['handler'] = (store) => async (request, response) => {
  await writeEffect(store, request)
  response.status(201).json({})
}

it('a pool that ends under a request: that one commits, later ones get the 503', async () => {
  let letGo = (): void => {}
  const { promise: reached, resolve: reach } = withResolvers()
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

  it('usage, execute, select and insert run everything', async () => {
    const { least, url } = await openLeast()
    const statuses = new Map<string, number>()
    const receiver = await openCoupled({
      url,
      options: { maxResponseBytes: 100, singleUse: true },
      handler: (store) => async (request, response) => {
        await writeEffect(store, request)
        const status = statuses.get(request.idempotency?.key ?? '') ?? 201
        response.status(status).send(status === 202 ? 'x'.repeat(200) : 'short')
      },
    })
    await receiver.store.check()
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
  })

  it.each<[string, (role: string) => string, number]>([
    ['a table', () => 'drop table service_auth.idempotency', 503],
    ['the schema', () => 'drop schema service_auth cascade', 503],
    ['the right to look', (role) => `revoke select on service_auth.idempotency from ${role}`, 503],
    ['usage', (role) => `revoke usage on schema service_auth from ${role}`, 503],
    // The handler has run by then, and what it has written is undone.
    ['the right to add', (role) => `revoke insert on service_auth.idempotency from ${role}`, 500],
  ])('without %s', async (_what, text, status) => {
    const { least, role, url } = await openLeast()
    await least.query(text(role))
    const receiver = await openCoupled({ url, handler: writes })
    const key = newKey()
    expect(await call(receiver.port, { key })).toMatchObject({ status })
    expect(await least.effects(key)).toBe(0)
    await expect(receiver.store.check()).rejects.toMatchObject({ code: 'unfit' })
  })
})
