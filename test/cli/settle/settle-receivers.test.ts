import express, { type Response } from 'express'
import { encryptedStore, type IdempotencyStore, type RecordView } from 'express-service-auth'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { KEYS } from '../../stores/encrypted/encrypted-kit.js'
import { openStore } from '../../stores/redis/kit.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { type RedisServer, startRedis } from '../../support/redis/redis.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { until } from '../../support/until.js'
import { temporaryFile } from '../kit.js'
import { settle } from './settle-kit.js'

for (const key of Object.values(KEYS)) knowSecret('an encryption key', key)

const ORDER = '{"order":17,"note":"settled by hand"}'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  return () => server.stop()
})

/** A receiver, its first write with a key, and the record of that. */
async function written(
  answer: (response: Response, run: number) => unknown,
  around = (store: IdempotencyStore) => store,
) {
  const { store } = openStore(server, { timeoutMs: 5000 })
  let record = ''
  const inner: IdempotencyStore = {
    ...store,
    reserve(request) {
      record = request.recordId
      return store.reserve(request)
    },
  }
  let runs = 0
  const receiver = await openOrders({
    express,
    store: around(inner),
    options: { maxResponseBytes: 50 },
    handler: (_request, response) => void answer(response, ++runs),
  })
  onTestFinished(() => receiver.close())
  const key = newKey()
  const retry = () => call(receiver.port, { key })
  const first = await retry()
  const view = async () => (await settle(server, record, '--json')).json()['view'] as RecordView
  return { record, first, retry, view, runs: () => runs }
}

it('a write whose run was lost gives the answer that is settled by hand', async () => {
  const around = (store: IdempotencyStore) =>
    encryptedStore(store, { keys: KEYS, current: '2026-01' })
  const { record, retry, view } = await written((response) => response.destroy(), around)
  await until('the run is over', async () => (await view()).state === 'abandoned')
  expect((await retry()).problem).toBe('outcome-unknown')
  const keys = Object.entries(KEYS).map(([id, key]) => [id, key.toString('base64url')])
  const text = JSON.stringify({ current: '2026-02', keys: Object.fromEntries(keys) })
  const lines = ['Content-Type: application/json', 'Location: /orders/17', 'Link: <a>', 'link: <b>']
  const ran = await settle(
    server,
    record,
    ...['--fence', String((await view()).fence), '--keys', await temporaryFile(text)],
    ...['--done', '201', '--body', await temporaryFile(ORDER)],
    ...lines.flatMap((line) => ['--header', line]),
  )
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  const { status, headers, body } = await retry()
  expect([status, body.toString()]).toEqual([201, ORDER])
  expect(headers).toMatchObject({
    'content-type': ['application/json'],
    location: ['/orders/17'],
    link: ['<a>', '<b>'],
    'content-length': [String(ORDER.length)],
    'idempotent-replayed': ['true'],
  })
})

it.each([
  ['a stored answer', 'text/plain', ''],
  ['an answer too large to store', 'text/plain', 'x'.repeat(100)],
  ['a stream', 'text/event-stream', ''],
])('a write runs once more when %s is forgotten', async (_what, type, rest) => {
  const { record, first, retry, view, runs } = await written((response, run) =>
    response.type(type).end(`run ${run}${rest}`),
  )
  expect(first.body.toString()).toContain('run 1')
  const forget = ['--fence', String((await view()).fence), '--forget', '--reason', 'undone']
  // A stream may still be ending.
  await until('it is forgotten', async () => {
    const ran = await settle(server, record, ...forget)
    return ran.exitCode === 0
  })
  expect((await retry()).body.toString()).toContain('run 2')
  await retry()
  expect(runs()).toBe(2)
})
