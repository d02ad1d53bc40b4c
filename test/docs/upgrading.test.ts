import express from 'express'
import {
  type IdempotencyOptions,
  memoryStore,
  requireIdempotencyKey,
  serviceAuth,
} from 'express-service-auth'
import type { TestIssuer } from 'express-service-auth/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { serve } from '../support/receiver/serve.js'

let issuer: TestIssuer

beforeAll(async () => {
  issuer = await createTestIssuer()
})
afterAll(() => issuer.close())

type Differing = Partial<Omit<IdempotencyOptions, 'store'>> & { readonly path?: string }

/** A write at a receiver, then its retry at another on the same store, which differs in something. */
async function statusesOf(one: Differing, other: Differing) {
  const store = memoryStore()
  let runs = 0
  const answers: number[] = []
  for (const { path = '/orders', ...options } of [one, other]) {
    const auth = serviceAuth(issuer.policy())
    const app = express().use(auth, express.json())
    app.post(path, requireIdempotencyKey({ store, ...options }), (_req, res) => {
      runs += 1
      res.status(201).json({})
    })
    const served = await serve(app)
    const headers = {
      authorization: `Bearer ${issuer.token()}`,
      'content-type': 'application/json',
      'idempotency-key': 'k',
    }
    const init = { method: 'POST', headers, body: '{}' }
    answers.push((await fetch(`${served.url}${path}`, init)).status)
    await served.close()
    auth.close()
  }
  store.close()
  return { runs, answers }
}

const named = { operation: 'place an order', fingerprint: () => 'the body' }

it.each<readonly [string, Differing, Differing, number, number]>([
  ['nothing', {}, {}, 1, 201],
  ['the path, without an operation', {}, { path: '/v2/orders' }, 2, 201],
  [
    'the path, with an operation and a fingerprint',
    named,
    { ...named, path: '/v2/orders' },
    1,
    201,
  ],
  [
    'the path, with an operation alone',
    { operation: 'o' },
    { operation: 'o', path: '/v2' },
    1,
    422,
  ],
  ['the operation', { operation: 'one' }, { operation: 'other' }, 2, 201],
  ['the fingerprint', {}, { fingerprint: () => 'the body' }, 1, 422],
  ['what is kept', {}, { retentionSeconds: 60, maxResponseBytes: 1 }, 1, 201],
])('a retry at a receiver that differs in %s', async (_, one, other, runs, status) => {
  expect(await statusesOf(one, other)).toEqual({ runs, answers: [201, status] })
})
