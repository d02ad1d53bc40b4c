import { rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fromPg, migration, postgresStore } from 'express-service-auth/postgres'
import { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import {
  type CoupledOptions,
  createLedger,
  type Ledger,
  openCoupled,
  writeEffect,
} from '../../support/receiver/coupled-receiver.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../../support/receiver/express-majors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { startOrders } from '../../support/receiver/receiver.js'
import { withResolvers } from '../../support/with-resolvers.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const writes: CoupledOptions['handler'] = (store) => async (request, response) => {
  await writeEffect(store, request)
  response.status(201).json({})
}

it('a pool that ends under a request: that one commits, later ones get the 503', async () => {
  const { promise: reached, resolve: reach } = withResolvers()
  const { promise: released, resolve: letGo } = withResolvers()
  const pool = new Pool({ connectionString: ledger.url })
  const store = postgresStore(fromPg(pool), { sweepSeconds: false })
  const receiver = await startOrders({
    express: EXPRESS_MAJORS[1]?.express as ExpressModule,
    store,
    async handler(request, response) {
      await writeEffect(store, request)
      reach()
      await released
      response.status(201).json({})
    },
  })
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

/**
 * Puts a table that is empty on a device without space, for connections that are made from now on: Postgres takes any
 * file under the name of the table's. Resolves with what frees space.
 */
async function fillDiskUnder(ledger: Ledger, table: string): Promise<() => Promise<void>> {
  const [row] = await ledger.query<{ folder: string; path: string }>(
    "select current_setting('data_directory') as folder, pg_relation_filepath($1) as path",
    [table],
  )
  const path = join(row?.folder ?? '', row?.path ?? '')
  await rename(path, `${path}.aside`)
  await symlink('/dev/full', path)
  return async () => {
    await rm(path)
    await rename(`${path}.aside`, path)
  }
}

describe('resources that run out are the 503', () => {
  it('the disk, at the record, and then it runs', async () => {
    const full = await createLedger(postgres)
    const events = hearIdempotency()
    const receiver = await openCoupled({ url: full.url, handler: writes })
    const key = newKey()
    const freeUp = await fillDiskUnder(full, 'service_auth.idempotency')
    expect(await call(receiver.port, { key })).toMatchObject({ status: 503 })
    expect(events.at(-1)).toMatchObject({ reason: 'store_unavailable', sqlState: '53100' })
    await freeUp()
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

it('usage, execute, select and insert are grants enough', async () => {
  const least = await createLedger(postgres)
  await least.query('create role least login')
  await least.query(migration({ appRole: 'least' }))
  await least.query('grant insert on effect to least; grant usage on effect_id_seq to least')
  const statuses = new Map<string, number>()
  const receiver = await openCoupled({
    url: urlFor(least.url, 'least'),
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
