import { setTimeout as sleep } from 'node:timers/promises'
import { encryptedStore, type IdempotencyStore, type RecordView } from 'express-service-auth'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { KEYS } from '../../stores/encrypted/encrypted-kit.js'
import { openStore } from '../../stores/redis/kit.js'
import { issuer } from '../../support/issuer/issuer.js'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { makeStage } from '../../support/receiver/each-receiver.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../../support/receiver/express-majors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { type RedisServer, startRedis } from '../../support/redis/redis.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { until } from '../../support/until.js'
import { temporaryFile } from '../kit.js'
import { settle, settleBy } from './settle-kit.js'

for (const key of Object.values(KEYS)) knowSecret('an encryption key', key)

const LEASE_MS = 1000
const ORDER = '{"order":17,"note":"settled by hand"}'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  return () => server.stop()
})

/** A first run at work that cannot renew its lease, which has ended; later runs answer at once. */
async function orphaned(express: ExpressModule, around = (store: IdempotencyStore) => store) {
  const stages = makeStage()
  const events = hearIdempotency()
  const { store } = openStore(server, { timeoutMs: 5000 })
  let record = ''
  const inner: IdempotencyStore = {
    ...store,
    reserve(request) {
      record = request.key
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
  const isTold = () =>
    until('the run is told', async () =>
      events.some((event) => event.reason === 'key_lost' && event.record === record),
    )
  const finish = () => {
    stages.leave()
    return answer
  }
  return { store, key, record, retry, finish, isTold }
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

/** Settles a write whose run comes back so much later. */
async function expectKept(
  express: ExpressModule,
  ending: 'freed' | 'finished',
  afterMs: number,
): Promise<void> {
  const { record, store, retry, finish, isTold } = await orphaned(express)
  const action = ending === 'freed' ? ['--free'] : await doneOptions()
  const ran = await settle(server, record, '--fence', await fenceShown(record), ...action)
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  const contents = await server.command('GET', `esa:k:${record}`)
  await sleep(afterMs)
  const first = await finish()
  expect([first.status, first.body.toString()]).toEqual([200, 'run 1'])
  await isTold()
  expect(await server.command('GET', `esa:k:${record}`)).toBe(contents)
  expect((await store.inspect(record))?.state).toBe(ending)
  if (ending === 'finished') return await expectOrder(retry())
  expect((await retry()).body.toString()).toBe('run 2')
  expect((await retry()).headers['idempotent-replayed']).toEqual(['true'])
}

describe.each(EXPRESS_MAJORS)('a write settled by hand, $major', ({ express }) => {
  it('stays so when its run comes back, at once or after two leases', async () => {
    await Promise.all(
      [0, 2 * LEASE_MS].flatMap((afterMs) => [
        expectKept(express, 'freed', afterMs),
        expectKept(express, 'finished', afterMs),
      ]),
    )
  })

  it('gives the same answer from an encrypted store', async () => {
    const around = (store: IdempotencyStore) =>
      encryptedStore(store, { keys: KEYS, current: '2026-01' })
    const { record, retry, finish } = await orphaned(express, around)
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
          record = request.key
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

  it('is named by its key, bare or quoted', async () => {
    const { key, record, finish } = await orphaned(express)
    const { keySet: _, ...bare } = issuer.policy({ callers: ['billing'] })
    const { audience, issuer: url } = bare
    const route = ['--method', 'post', '--mount', '', '--route', '/orders/:id']
    const scope = ['--caller', 'billing', '--issuer', url, '--audience', audience, ...route]
    for (const stdin of [key, `${key}\n`, `"${key}"\n`]) {
      const ran = await settleBy(server, ['--key-stdin', ...scope], stdin)
      expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
      expect(ran.stdout).toContain(`record   ${record}\n`)
      expect(ran.stdout).not.toContain(key)
    }
    const policy = await temporaryFile(JSON.stringify(bare))
    const byPolicy = ['--key-stdin', '--caller', 'billing', '--policy', policy, ...route]
    const ran = await settleBy(server, byPolicy, key)
    expect(ran.stdout + ran.stderr).toContain(`record   ${record}\n`)
    await finish()
  })
})
