import { randomUUID } from 'node:crypto'
import express from 'express'
import { type CoupledStore, requireIdempotencyKey } from 'express-service-auth'
import { afterAll, expect, it } from 'vitest'
import { issuer, startRoute } from '../body-readers.js'

afterAll(() => issuer.close())

it('tells a retry to wait for a second, whatever a custom coupled store adds to a running key', async () => {
  const running = { outcome: 'running', leaseLeftMs: Number.NaN } as const
  const store: CoupledStore = {
    run: async () => running,
    consume: async () => true,
  }
  const readers = [express.json(), requireIdempotencyKey({ store })]
  const { post } = await startRoute(express, readers, (_request, response) => response.end())
  const answer = await post({ key: randomUUID(), type: 'application/json', body: '{"a":1}' })
  expect([answer.status, answer.headers['retry-after']]).toEqual([409, '1'])
})
