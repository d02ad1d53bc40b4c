import PgBoss from 'pg-boss'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { launch } from '../../support/process/launch.js'
import { createLedger, openCoupled, writeEffect } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { withResolvers } from '../../support/with-resolvers.js'
import { QUEUE, startWorker } from './effect-worker.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const boss = new PgBoss({ connectionString: ledger.url, supervise: false, schedule: false })
beforeAll(async () => {
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue(QUEUE)
})
afterAll(() => boss.stop({ graceful: false }))

interface JobRow extends Record<string, unknown> {
  readonly id: string
  readonly state: string
  readonly retry_count: number
}

const jobsOf = (order: string): Promise<JobRow[]> =>
  ledger.query('select id, state, retry_count from pgboss.job where data @> $1', [
    JSON.stringify({ order }),
  ])

/** Orders, and tells of each by a job in the same transaction. */
function openOrdering(status: () => number) {
  const ids: string[] = []
  const opening = openCoupled({
    url: ledger.url,
    handler: (store) => async (request, response) => {
      const tx = store.transactionOf(request)
      await writeEffect(store, request)
      const id = store.effectId(request, 'bill')
      ids.push(id)
      const order = request.idempotency?.key
      const executeSql = (text: string, values: unknown[]) => tx.query(text, values)
      await boss.send(
        QUEUE,
        { order },
        { id, expireInSeconds: 1, retryLimit: 5, db: { executeSql } },
      )
      response.status(status()).json({ id })
    },
  })
  return { opening, ids }
}

it('no job after a rollback, one after the rerun, none more after replays', async () => {
  const statuses = [500, 429, 404, 201]
  const { opening, ids } = openOrdering(() => statuses[0] as number)
  const receiver = await opening
  const key = newKey()
  for (const status of [500, 429]) {
    expect(await call(receiver.port, { key })).toMatchObject({ status })
    expect(await jobsOf(key)).toEqual([])
    statuses.shift()
  }
  const refusedKey = newKey()
  expect(await call(receiver.port, { key: refusedKey })).toMatchObject({ status: 404 })
  expect(await jobsOf(refusedKey)).toEqual([])
  statuses.shift()
  for (let calls = 0; calls < 3; calls++) {
    expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
  }
  // A job that is there already is not sent twice, whatever the record says.
  await ledger.query('delete from service_auth.idempotency')
  expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
  const [refusedId] = ids.splice(2, 1)
  expect(new Set(ids).size).toBe(1)
  expect(refusedId).not.toBe(ids[0])
  expect(await jobsOf(key)).toEqual([{ id: ids[0], state: 'created', retry_count: 0 }])
  await boss.deleteJob(QUEUE, ids[0] as string)
})

it('a killed worker’s job is done again under the same id, and is made once', async () => {
  const received: (string | undefined)[] = []
  const { promise: first, resolve: onFirst } = withResolvers()
  const { promise: released, resolve: letGo } = withResolvers()
  const billing = await openCoupled({
    url: ledger.url,
    more: {
      outer: [
        (request, _response, next) => {
          received.push(request.get('idempotency-key'))
          next()
        },
      ],
    },
    handler: (store) => async (request, response) => {
      await writeEffect(store, request)
      onFirst()
      await released
      response.status(201).json({ billed: true })
    },
  })
  const { opening, ids } = openOrdering(() => 201)
  const ordering = await opening
  const token = issuer.token()
  const worker = await launch<string>(new URL('./effect-worker.ts', import.meta.url), {
    env: {
      WORKER_DATABASE: ledger.url,
      WORKER_RECEIVER: String(billing.port),
      WORKER_TOKEN: token,
    },
  })
  const key = newKey()
  expect(await call(ordering.port, { key })).toMatchObject({ status: 201 })
  await first
  await worker.kill()
  letGo()
  const [id] = ids as [string]
  await expect.poll(() => ledger.effects(id)).toBe(1)

  const successor = await startWorker({
    databaseUrl: ledger.url,
    receiverPort: billing.port,
    token,
  })
  onTestFinished(() => successor.stop({ graceful: false }))
  await expect
    .poll(async () => (await jobsOf(key))[0]?.state, { timeout: 15_000, interval: 50 })
    .toBe('completed')
  expect(await jobsOf(key)).toEqual([{ id, state: 'completed', retry_count: expect.any(Number) }])
  expect(received.length).toBeGreaterThanOrEqual(2)
  expect(new Set(received)).toEqual(new Set([id]))
  expect(billing.handled).toBe(1)
  expect(await ledger.effects(id)).toBe(1)
  expect(await ledger.effects(key)).toBe(1)
})
