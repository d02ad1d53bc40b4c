import { EventEmitter } from 'node:events'
import express from 'express'
import { memoryStore, requirePermissions, requireSingleUse } from 'express-service-auth'
import { expect, it } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'
import {
  authFor,
  type Receiver,
  startBehind,
  startOrders,
} from '../../support/receiver/receiver.js'
import { until } from '../../support/until.js'
import { meter, type Tracing, traceRequests, withoutPrefix } from './telemetry.js'

const billing = { 'service.peer.name': 'billing' }

/** The attributes of the span of each request that has ended, in order. */
async function attributesOf({ spans }: Tracing, count: number): Promise<unknown[]> {
  await until('the spans have ended', async () => spans().length >= count)
  return spans().map(({ attributes }) => withoutPrefix(attributes))
}

async function open(
  { middleware }: Tracing,
  options: Partial<OrdersOptions>,
): Promise<Receiver & { close(): Promise<void> }> {
  const receiver = await startOrders({
    express,
    outer: [middleware],
    handler: (_req, res) => void res.status(201).json({}),
    ...options,
  })
  return receiver
}

it('notes on the span of each request what was decided last', async () => {
  const tracing = traceRequests()
  meter()
  const receiver = await startBehind(
    express,
    tracing.middleware,
    authFor(issuer.policy()),
    requirePermissions('orders:read'),
    requireSingleUse({ store: memoryStore() }),
  )
  const token = issuer.token({ permissions: ['orders:read'] })
  await receiver.call(token)
  await receiver.call(token)
  await receiver.call(issuer.token({ sub: 'stranger' }))
  await receiver.call()
  const key = { key_id: issuer.kid }
  expect(await attributesOf(tracing, 4)).toEqual([
    { guard: 'requireSingleUse', outcome: 'accepted', ...key, ...billing },
    {
      guard: 'requireSingleUse',
      outcome: 'refused',
      reason: 'token_replayed',
      ...key,
      ...billing,
    },
    { guard: 'serviceAuth', outcome: 'refused', reason: 'caller_not_approved', ...key },
    { guard: 'serviceAuth', outcome: 'refused', reason: 'credentials_missing' },
  ])
})

it('notes the record and the fence of a write, and how its run ended', async () => {
  const tracing = traceRequests()
  meter()
  const receiver = await open(tracing, { store: memoryStore() })
  const key = newKey()
  await call(receiver.port, { key })
  await call(receiver.port, { key })
  await call(receiver.port)
  const spans = await attributesOf(tracing, 3)
  const guard = { guard: 'requireIdempotencyKey', key_id: issuer.kid, ...billing }
  const record = expect.stringMatching(/^[\w-]{24}$/)
  const fence = expect.any(Number)
  expect(spans).toEqual([
    { ...guard, outcome: 'accepted', reason: 'result_kept', record, fence },
    { ...guard, outcome: 'accepted', reason: 'replayed', record },
    { ...guard, outcome: 'refused', reason: 'key_missing' },
  ])
  expect(JSON.stringify(spans)).not.toContain(key)
})

it('leaves the spans of other requests alone where a handler answers in the context of another', async () => {
  const tracing = traceRequests()
  meter()
  const work = new EventEmitter()
  let answerFirst = (): void => {}
  const receiver = await open(tracing, {
    store: memoryStore(),
    handler(req, res) {
      if (req.params['id'] === '1') {
        answerFirst = () => void res.status(201).json({})
        work.emit('waiting')
        return
      }
      // A pool of connections that calls back in the context of whoever asks next.
      answerFirst()
      setTimeout(() => res.status(202).json({}), 50)
    },
  })
  const waiting = new Promise((resolve) => work.once('waiting', resolve))
  const first = call(receiver.port, { key: newKey() })
  await waiting
  await call(receiver.port, { key: newKey(), path: '/orders/2' })
  await first
  const spans = (await attributesOf(tracing, 2)) as { reason: string; record: string }[]
  expect(spans.map(({ reason }) => reason)).toEqual(['result_kept', 'result_kept'])
  expect(new Set(spans.map(({ record }) => record)).size).toBe(2)
})

it('notes nothing on spans where that is not wanted', async () => {
  const tracing = traceRequests()
  const { series } = meter({ spans: false })
  const receiver = await open(tracing, {})
  await call(receiver.port)
  expect(await attributesOf(tracing, 1)).toEqual([{}])
  expect(await series('decisions')).toHaveLength(1)
})
