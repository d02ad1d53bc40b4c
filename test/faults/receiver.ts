import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as endOfTick } from 'node:timers/promises'
import express5, { type RequestHandler, type Response } from 'express'
import {
  requireIdempotencyKey,
  requireSingleUse,
  type Store,
  serviceAuth,
} from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import express4 from 'express4'
import { serveUntilSignal } from '../../example-app/orders/serve-until-signal.js'
import { redisClient } from './redis-client.js'
import { arrive, setting, stopAt } from './stopping.js'
import { LARGE_BYTES, type Stop } from './stops.js'

// One receiver in a process of its own, whose requests stop wherever their `X-Stop-At` says until the
// test lets them go on. Its effects are lines in the ledger.

const clockError = Number(setting('CLOCK_ERROR_MS'))
const trueNow = Date.now
Date.now = () => trueNow() + clockError

const stopOfRequest = new AsyncLocalStorage<string | undefined>()

async function pass(stop: Stop, wanted = stopOfRequest.getStore()): Promise<void> {
  if (wanted?.split(', ').includes(stop)) await stopAt(stop)
}

/** Stops once what Redis is asked has left, which it does at the end of a tick. */
async function during<T>(stop: Stop, asked: Promise<T>): Promise<T> {
  asked.catch(() => {})
  await endOfTick()
  await endOfTick()
  await pass(stop)
  return asked
}

const inner = redisStore(await redisClient(JSON.parse(setting('REDIS'))), {
  timeoutMs: Number(setting('TIMEOUT_MS')),
})
const store: Store = {
  ...inner,
  async reserve(request) {
    await pass('before reserving')
    const found = await during('reserving', inner.reserve(request))
    if (found.outcome === 'reserved') await pass('reserved')
    return found
  },
  async settle(run, ending) {
    await pass('before storing')
    const isKept = await during('storing', inner.settle(run, ending))
    await pass('stored')
    return isKept
  },
}

/** Stands outside of the key, where the bytes go to the caller. */
function stopSending(response: Response, wanted: string | undefined): void {
  if (wanted !== 'before sending' && wanted !== 'while sending') return
  const { write, end } = response
  const sendRest = (rest: Buffer): Response => Reflect.apply(end, response, [rest])
  response.end = ((body: Buffer) => {
    const half = wanted === 'before sending' ? 0 : Math.floor(body.length / 2)
    const stopThere = () => void pass(wanted, wanted).then(() => sendRest(body.subarray(half)))
    if (half === 0) stopThere()
    else Reflect.apply(write, response, [body.subarray(0, half), stopThere])
    return response
  }) as Response['end']
}

const watch: RequestHandler = (request, response, next) => {
  const wanted = request.get('x-stop-at')
  if (wanted !== undefined) response.once('close', () => arrive('closed'))
  stopSending(response, wanted)
  stopOfRequest.run(wanted, () => next())
}

const MAX_RESPONSE_BYTES = 65_536

const createOrder: RequestHandler = async (request, response) => {
  const { key, fence } = request.idempotency ?? {}
  await pass('before the write')
  appendFileSync(setting('LEDGER'), `${key} ${fence}\n`)
  await pass('after the write')
  response.status(201).location(`/orders/${key}`)
  if (request.body.isLarge) {
    const flowing = Buffer.alloc(MAX_RESPONSE_BYTES + 1, 'x')
    await new Promise((resolve) => response.write(flowing, resolve))
    await pass('while streaming')
    response.end()
  } else response.json({ key, fence, note: 'Zwölf Boxkämpfer ✓'.repeat(20) })
}

const express = setting('EXPRESS') === '4' ? (express4 as unknown as typeof express5) : express5
const app = express()
app.get('/store', (_request, response) => {
  inner.consume(randomUUID(), 1000).then(
    () => response.sendStatus(200),
    () => response.sendStatus(503),
  )
})
app.get('/large', (_request, response) => {
  response.end(Buffer.alloc(LARGE_BYTES, 'x'))
})
const auth = serviceAuth({
  issuer: setting('ISSUER'),
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
  clockToleranceSeconds: 60,
  clock: Date.now,
})
app.use(auth)
for (const whenAbandoned of ['refuse', 'rerun'] as const) {
  app.post(
    `/${whenAbandoned}`,
    express.json(),
    watch,
    requireSingleUse({ store }),
    requireIdempotencyKey({
      store,
      whenAbandoned,
      leaseSeconds: Number(setting('LEASE_MS')) / 1000,
      maxResponseBytes: MAX_RESPONSE_BYTES,
    }),
    createOrder,
  )
}

const server = createServer()
serveUntilSignal(server, {
  app,
  ready: auth.ready,
  health: auth.health,
  close() {
    auth.close()
    inner.close()
  },
  serveOnMs: Number(setting('SERVE_ON_MS')),
  waitMs: Number(setting('WAIT_MS')),
})
await auth.ready()
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
