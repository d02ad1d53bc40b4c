import express from 'express'
import { encryptedStore, type IdempotencyStore, type RecordView } from 'express-service-auth'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { KEYS } from '../../stores/encrypted/encrypted-kit.js'
import { openStore } from '../../stores/redis/kit.js'
import { makeStage } from '../../support/receiver/each-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { type RedisServer, startRedis } from '../../support/redis/redis.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { until } from '../../support/until.js'
import { temporaryFile } from '../kit.js'
import { settle } from './settle-kit.js'

for (const key of Object.values(KEYS)) knowSecret('an encryption key', key)

const LEASE_MS = 1000
const ORDER = '{"order":17,"note":"settled by hand"}'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  return () => server.stop()
})

/** A first run at work that cannot renew its lease, which has ended; later runs answer at once. */
async function orphaned(around = (store: IdempotencyStore) => store) {
  const stages = makeStage()
  const { store } = openStore(server, { timeoutMs: 5000 })
  let record = ''
  const inner: IdempotencyStore = {
    ...store,
    reserve(request) {
      record = request.recordId
      return store.reserve(request)
    },
    renew: () => Promise.reject(new Error('unreachable')),
  }
  let runs = 0
  const receiver = await openOrders({
    express,
    store: around(inner),
    options: { leaseSeconds: LEASE_MS / 1000, maxRunSeconds: 1 },
    async handler(_request, response) {
      runs += 1
      const run = runs
      if (run === 1) {
        stages.enter(response)
        await stages.left
      }
      response.status(200).end(`run ${run}`)
    },
  })
  onTestFinished(() => receiver.close())
  const key = newKey()
  const retry = () => call(receiver.port, { key })
  const answer = retry()
  await stages.entered
  await until('the lease ends', async () => (await retry()).problem === 'outcome-unknown')
  const finish = () => {
    stages.leave()
    return answer
  }
  return { record, retry, finish }
}

async function doneOptions(): Promise<string[]> {
  const headers = [
    'Content-Type: application/json',
    'Location: /orders/17',
    'Link: <a>',
    'link: <b>',
  ]
  const body = ['--body', await temporaryFile(ORDER)]
  return ['--done', '201', ...headers.flatMap((line) => ['--header', line]), ...body]
}

async function fenceShown(record: string): Promise<string> {
  const view = (await settle(server, record, '--json')).json()['view'] as RecordView
  expect(view.state).toBe('abandoned')
  return String(view.fence)
}

async function expectOrder(retry: Promise<Awaited<ReturnType<typeof call>>>): Promise<void> {
  const { status, headers, body } = await retry
  expect([status, body.toString()]).toEqual([201, ORDER])
  expect(headers).toMatchObject({
    'content-type': ['application/json'],
    location: ['/orders/17'],
    link: ['<a>', '<b>'],
    'content-length': [String(ORDER.length)],
    'idempotent-replayed': ['true'],
  })
}

describe('a write settled by hand', () => {
  it('gives the same answer from an encrypted store', async () => {
    const around = (store: IdempotencyStore) =>
      encryptedStore(store, { keys: KEYS, current: '2026-01' })
    const { record, retry, finish } = await orphaned(around)
    const keys = Object.entries(KEYS).map(([id, key]) => [id, key.toString('base64url')])
    const text = JSON.stringify({ current: '2026-02', keys: Object.fromEntries(keys) })
    const options = ['--fence', await fenceShown(record), '--keys', await temporaryFile(text)]
    const ran = await settle(server, record, ...options, ...(await doneOptions()))
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    await expectOrder(retry())
    await finish()
  })

  it.each([
    ['a stored answer', 'text/plain', ''],
    ['an answer too large to store', 'text/plain', 'x'.repeat(100)],
    ['a stream', 'text/event-stream', ''],
  ])('runs once more when %s is forgotten', async (_what, type, rest) => {
    const { store } = openStore(server, { timeoutMs: 5000 })
    let record = ''
    let runs = 0
    const receiver = await openOrders({
      express,
      store: {
        ...store,
        reserve(request) {
          record = request.recordId
          return store.reserve(request)
        },
      },
      options: { maxResponseBytes: 50 },
      handler(_request, response) {
        runs += 1
        response.type(type).end(`run ${runs}${rest}`)
      },
    })
    onTestFinished(() => receiver.close())
    const key = newKey()
    expect((await call(receiver.port, { key })).body.toString()).toContain('run 1')
    const forget = ['--fence', String((await store.inspect(record))?.fence), '--forget']
    // A stream may still be ending.
    await until('it is forgotten', async () => {
      const ran = await settle(server, record, ...forget, '--reason', 'undone')
      return ran.exitCode === 0
    })
    expect((await call(receiver.port, { key })).body.toString()).toContain('run 2')
    await call(receiver.port, { key })
    expect(runs).toBe(2)
  })
})
