import express from 'express'
import { encryptedStore, type IdempotencyStore, type RecordView } from 'express-service-auth'
import { afterAll, expect, it } from 'vitest'
import { KEYS } from '../../stores/encrypted/encrypted-kit.js'
import { openStore } from '../../stores/redis/kit.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { startOrders } from '../../support/receiver/receiver.js'
import { startRedis } from '../../support/redis/redis.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { until } from '../../support/until.js'
import { temporaryFile } from '../kit.js'
import { settle } from './settle-kit.js'

for (const key of Object.values(KEYS)) knowSecret('an encryption key', key)

const ORDER = '{"order":17,"note":"settled by hand"}'

const server = await startRedis()
afterAll(() => server.stop())

it('a write whose run was lost gives the answer that is settled by hand', async () => {
  const { store } = openStore(server, { timeoutMs: 5000 })
  let record = ''
  const inner: IdempotencyStore = {
    ...store,
    reserve(request) {
      record = request.recordId
      return store.reserve(request)
    },
  }
  const receiver = await startOrders({
    express,
    store: encryptedStore(inner, { keys: KEYS, current: '2026-01' }),
    handler: (_request, response) => void response.destroy(),
  })
  const key = newKey()
  const retry = () => call(receiver.port, { key })
  const view = async () => (await settle(server, record, '--json')).json()['view'] as RecordView
  await retry()
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
