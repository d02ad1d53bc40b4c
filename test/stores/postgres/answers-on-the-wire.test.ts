import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Request, RequestHandler, Response } from 'express'
import type { PostgresStore } from 'express-service-auth/postgres'
import type { PoolClient } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { startPostgresProxy } from '../../support/postgres/postgres-proxy.js'
import { createLedger, openCoupled, writeEffect } from '../../support/receiver/coupled-receiver.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { call, callRaw, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'
import { withResolvers } from '../../support/with-resolvers.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const THIS_FILE = fileURLToPath(import.meta.url)
const QUIET_MS = 30
const KEPT_BYTES = 65_536

interface Way {
  readonly name: string
  readonly status: number
  answer(response: Response, next: (error?: unknown) => void, request: Request): unknown
  readonly method?: string
  readonly keepsWrites?: boolean
  /** What has to be over before a byte may be sent; by default COMMIT. */
  readonly before?: RegExp
  /** Of writes that stay; by default 1. */
  readonly effects?: number
  /** What a retry gets; by default the same again, as a replay. */
  readonly retry?: number
  readonly body?: string
}

/** It stands behind the record, where that goes without a value. */
const COMMIT = /(^|; )commit$/i
const REFUSED = { before: /insert into "service_auth"\.idempotency/, effects: 0 }
const UNDONE = { before: /^rollback/i, effects: 0 }

/** One of each kind: that every way to send is gathered is shown by test/idempotency/buffered-response. */
const WAYS: readonly Way[] = [
  { name: 'json', status: 201, answer: (r) => r.status(201).json({ a: 1 }), body: '{"a":1}' },
  { name: 'pipe', status: 200, answer: (r) => createReadStream(THIS_FILE).pipe(r) },
  {
    name: 'write and end',
    status: 201,
    async answer(r) {
      r.writeHead(201, { 'content-type': 'text/plain' })
      r.write('first ')
      await delay(5)
      r.write('second ')
      r.end('last')
    },
  },
  {
    name: 'flushHeaders',
    status: 200,
    async answer(r) {
      r.status(200).type('text').flushHeaders()
      await delay(5)
      r.end('flushed')
    },
  },
  { name: 'HEAD', method: 'HEAD', status: 200, answer: (r) => r.json({ a: 1 }), body: '' },
  { name: 'a 4xx', status: 404, answer: (r) => r.status(404).json({ no: 1 }), ...REFUSED },
  {
    name: 'a 4xx that is thrown',
    status: 422,
    answer() {
      throw Object.assign(new Error('refused'), { status: 422 })
    },
    ...REFUSED,
  },
  {
    name: 'a 4xx after keepWrites',
    status: 402,
    keepsWrites: true,
    answer: (r) => r.status(402).json({ attempts: 1 }),
  },
  { name: '500', status: 500, answer: (_r, next) => next(new Error('oh')), ...UNDONE, retry: 500 },
  {
    name: '503 after keepWrites',
    status: 503,
    keepsWrites: true,
    answer: (r) => r.sendStatus(503),
    ...UNDONE,
    retry: 503,
  },
  {
    name: 'more than is kept',
    status: 200,
    retry: 409,
    answer: (r) => r.send(randomBytes(KEPT_BYTES + 1)),
  },
  {
    name: 'a refusal of more than is kept',
    status: 400,
    retry: 409,
    answer: (r) => r.status(400).send(randomBytes(KEPT_BYTES + 1)),
    ...REFUSED,
  },
  {
    name: 'a failure of more than is kept',
    status: 500,
    retry: 500,
    answer: (r) => r.status(500).send(randomBytes(KEPT_BYTES + 1)),
    ...UNDONE,
  },
]

const proxy = await startPostgresProxy(postgres)
const url = proxy.urlFor(new URL(ledger.url).pathname.slice(1))

/** From now on nothing gets to the server from the statement on; tells when that is so. */
function holdAt(statement: RegExp): Promise<void> {
  // Or a test that fails would wait forever for what it has held.
  onTestFinished(() => proxy.heal())
  proxy.reset()
  proxy.cutAt({ at: statement, moment: 'silent before' })
  return until(`a statement ${statement}`, async () => proxy.cuts.length > 0)
}

describe.each(EXPRESS_MAJORS)('no byte before COMMIT, $major', ({ express }) => {
  const open = (handler: (store: PostgresStore<PoolClient>) => RequestHandler) =>
    openCoupled({ url, express, handler, options: { maxResponseBytes: KEPT_BYTES } })

  it('each way to answer', async () => {
    let way = WAYS[0] as Way
    const receiver = await open((store) => (request, response, next) => {
      const answered = writeEffect(store, request).then(() => {
        if (way.keepsWrites) store.keepWrites(request)
        return way.answer(response, next, request)
      })
      // What a handler throws goes to the app's error middleware.
      answered.catch(next)
    })
    for (way of WAYS) {
      const { name, status, method = 'POST', before = COMMIT, effects = 1 } = way
      const given = { key: newKey(), method, headers: { connection: 'close' } }
      const held = holdAt(before)
      const exchange = callRaw(receiver.port, given)
      await held
      await delay(QUIET_MS)
      expect(exchange.received(), name).toBe('')
      await proxy.heal()
      const answer = await exchange.closed
      expect(answer.slice(0, 12), name).toBe(`HTTP/1.1 ${status}`)
      const [head = '', body = ''] = answer.split('\r\n\r\n', 2)
      if (way.body !== undefined) expect(body, name).toBe(way.body)
      expect(await ledger.effects(given.key), name).toBe(effects)

      const retry = await call(receiver.port, { key: given.key, method })
      expect(retry.status, name).toBe(way.retry ?? status)
      if (way.retry !== undefined) continue
      expect(retry.headers['idempotent-replayed'], name).toEqual(['true'])
      if (!head.toLowerCase().includes('chunked'))
        expect(retry.body.toString('latin1'), name).toBe(body)
      expect(await ledger.effects(given.key), name).toBe(effects)
    }
  })

  it('100 MiB: committed first, not gathered meanwhile, and whole', async () => {
    const CHUNK = Buffer.alloc(1_048_576, 'x')
    const CHUNKS = 100
    let written = 0
    const receiver = await open((store) => async (request, response) => {
      await writeEffect(store, request)
      for (; written < CHUNKS; written++) {
        if (!response.write(CHUNK)) await once(response, 'drain')
      }
      response.end()
    })
    const key = newKey()
    const held = holdAt(COMMIT)
    let received = 0
    const authorization = `Bearer ${issuer.token()}`
    const sent = httpRequest({
      host: '127.0.0.1',
      port: receiver.port,
      method: 'POST',
      path: '/orders/1',
      headers: { authorization, 'idempotency-key': key },
      agent: false,
    })
    const ended = once(sent, 'response').then(async ([message]) => {
      for await (const chunk of message) received += chunk.length
    })
    sent.end()
    await held
    await delay(QUIET_MS)
    expect(received).toBe(0)
    expect(written).toBeLessThan(5)
    await proxy.heal()
    await ended
    expect(received).toBe(CHUNKS * CHUNK.length)
    expect(await ledger.effects(key)).toBe(1)
    expect(await call(receiver.port, { key })).toMatchObject({
      status: 409,
      problem: 'result-not-stored',
    })
  })

  it('an event stream: committed before its first event, and then it flows', async () => {
    const { promise: finished, resolve: finish } = withResolvers()
    let lateWrite: unknown
    const receiver = await open((store) => async (request, response) => {
      const tx = store.transactionOf(request)
      await writeEffect(store, request)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
      await finished
      lateWrite = await tx.query('select 1').catch((error: Error) => error.name)
      response.end('data: 2\n\n')
    })
    onTestFinished(() => finish())
    const key = newKey()
    const held = holdAt(COMMIT)
    const exchange = callRaw(receiver.port, { key, headers: { connection: 'close' } })
    await held
    await delay(QUIET_MS)
    expect(exchange.received()).toBe('')
    await proxy.heal()
    await expect.poll(exchange.received).toContain('data: 1\n\n')
    expect(await ledger.effects(key)).toBe(1)
    expect(exchange.received()).not.toContain('data: 2')
    finish()
    expect(await exchange.closed).toContain('data: 2\n\n')
    expect(lateWrite).toBe('TransactionEndedError')
    expect(await call(receiver.port, { key })).toMatchObject({ problem: 'result-not-stored' })
  })
})
