import { setTimeout as delay } from 'node:timers/promises'
import { TransactionEndedError } from 'express-service-auth/postgres'
import { type PoolClient, Query } from 'pg'
import { describe, expect, it } from 'vitest'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger, openCoupled, writeEffect } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { withResolvers } from '../../support/with-resolvers.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const LATE = "insert into effect (key, note) values ('late', 'late')"
const lateEffects = (): Promise<number> => ledger.effects('late')

type Write = () => PromiseLike<unknown>

/** Ways to write that a handler can have made ready before its answer. */
const KINDS: Readonly<Record<string, (tx: PoolClient) => Write>> = {
  'the client': (tx) => () => tx.query(LATE),
  'a bound function': (tx) => {
    const query = tx.query.bind(tx) as (text: string) => Promise<unknown>
    return () => query(LATE)
  },
  'a callback': (tx) => () =>
    new Promise((resolve, reject) => {
      // Who gives a callback looks at nothing else.
      tx.query(LATE, (error: Error) => (error ? reject(error) : resolve(undefined)))
    }),
  'a query object': (tx) => () =>
    new Promise((resolve, reject) => {
      const query = new Query(LATE)
      query.on('end', resolve)
      query.on('error', reject)
      tx.query(query)
    }),
  'a query object with a callback': (tx) => () =>
    new Promise((resolve, reject) => {
      const done = (error: Error | null) => (error ? reject(error) : resolve(undefined))
      tx.query(new Query(LATE, done as never))
    }),
}

/** When it is used: `undefined` is at once, and the last when another request has the connection. */
const MOMENTS: readonly ((reached: Promise<void>) => Promise<unknown> | undefined)[] = [
  () => undefined,
  () => Promise.resolve(),
  () => new Promise((resolve) => process.nextTick(resolve)),
  () => new Promise((resolve) => setImmediate(resolve)),
  (reached) => reached,
]

async function failureOf(write: Write): Promise<unknown> {
  try {
    return await write()
  } catch (error) {
    return error
  }
}

describe.each(Object.entries(KINDS))('%s', (_kind, makeReady) => {
  it('writes nothing after the answer, at any moment', async () => {
    const failures: Promise<unknown>[] = []
    const { promise: reached, resolve: reach } = withResolvers()
    const { promise: released, resolve: letGo } = withResolvers()
    const receiver = await openCoupled({
      url: ledger.url,
      pool: { max: 1 },
      handler: (store) => async (request, response) => {
        await writeEffect(store, request)
        if (request.query['owner']) {
          reach()
          await released
          response.status(200).json({})
          return
        }
        const write = makeReady(store.transactionOf(request))
        response.status(201).json({})
        for (const wait of MOMENTS) {
          const waited = wait(reached)
          failures.push(waited ? waited.then(() => failureOf(write)) : failureOf(write))
        }
      },
    })
    const [key, ownerKey] = [newKey(), newKey()]
    expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
    const owning = call(receiver.port, { key: ownerKey, path: '/orders/1?owner=1' })
    await reached
    const ended = await Promise.all(failures)
    letGo()
    expect(await owning).toMatchObject({ status: 200 })
    expect(ended).toHaveLength(MOMENTS.length)
    for (const failure of ended) expect(failure).toBeInstanceOf(TransactionEndedError)
    expect(await lateEffects()).toBe(0)
    expect([await ledger.effects(key), await ledger.effects(ownerKey)]).toEqual([1, 1])
  })

  it('writes nothing after the time-out', async () => {
    let failure: unknown
    let signal: AbortSignal | undefined
    let late: Promise<void> = Promise.resolve()
    const receiver = await openCoupled({
      url: ledger.url,
      pool: { max: 1 },
      store: { transactionMs: 100 },
      handler: (store) => (request) => {
        signal = request.idempotency?.signal
        const write = makeReady(store.transactionOf(request))
        late = delay(160).then(async () => {
          failure = await failureOf(write)
        })
      },
    })
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 503 })
    expect(signal?.aborted).toBe(true)
    await late
    expect(failure).toBeInstanceOf(TransactionEndedError)
    expect(await lateEffects()).toBe(0)
  })
})

it('a statement under way when the handler fails is rolled back with the rest: the answer waits for it', async () => {
  const key = newKey()
  const receiver = await openCoupled({
    url: ledger.url,
    handler: (store) => (request, response) => {
      store
        .transactionOf(request)
        .query(
          'with slow as (select pg_sleep(0.3)::text as slept) insert into effect (key) select $1 from slow',
          [key],
        )
        .catch(() => {})
      response.sendStatus(500)
    },
  })
  const begun = performance.now()
  expect(await call(receiver.port, { key })).toMatchObject({ status: 500 })
  expect(performance.now() - begun).toBeGreaterThan(290)
  expect(await ledger.effects(key)).toBe(0)
})
