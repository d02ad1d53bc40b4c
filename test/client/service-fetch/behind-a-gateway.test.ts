import { describe, expect, it } from 'vitest'
import { reportOf } from '../../../src/client/service-fetch/call-report.js'
import { answer, caller, ok, startService } from '../scripted-service.js'

const READ: RequestInit = { method: 'GET' }
const KEYED: RequestInit = { method: 'POST', body: 'x', headers: { 'idempotency-key': 'order-1' } }
const BARE: RequestInit = { method: 'POST', body: 'x' }

/** What Envoy, ALB and HAProxy send when no receiver can take a request. */
const noUpstream = answer(503, { 'content-type': 'text/plain' }, 'no healthy upstream')
/** API Gateway renames the challenge of the service behind it. */
const renamed = answer(401, { 'x-amzn-remapped-www-authenticate': 'Bearer error="invalid_token"' })
const plainChallenge = answer(401, { 'www-authenticate': 'Bearer realm="service"' })

describe.concurrent('a call through a gateway', () => {
  it.each([
    ['a read', READ],
    ['a write with a key', KEYED],
  ])('of %s is repeated after a 503 without Retry-After', async (_, init) => {
    const service = await startService(noUpstream, ok)
    const response = await caller(service)(service.url, init)
    expect(response.status).toBe(200)
    expect(reportOf(response).attempts).toMatchObject([{ status: 503 }, { status: 200 }])
    expect(reportOf(response).attempts[1]?.waitedMs).toBeGreaterThanOrEqual(50)
  })

  it.each([
    ['a read', READ],
    ['a write with a key', KEYED],
  ])('of %s renews the token once after a 401 without a challenge', async (_, init) => {
    const service = await startService(renamed, ok)
    expect((await caller(service)(service.url, init)).status).toBe(200)
    expect(new Set(service.tokens).size).toBe(2)
    const stubborn = await startService(renamed)
    expect((await caller(stubborn)(stubborn.url, init)).status).toBe(401)
    expect(stubborn.requests).toHaveLength(2)
  })

  it.each([
    ['a write without a key gets the 503', BARE, noUpstream, 503],
    ['a write without a key gets the 401', BARE, renamed, 401],
    ['a read gets the 401 with a challenge that names no error', READ, plainChallenge, 401],
    ['a replayed 503', KEYED, answer(503, { 'idempotent-replayed': 'true' }), 503],
  ])('is not repeated: %s', async (_, init, reply, status) => {
    const service = await startService(reply, ok)
    expect((await caller(service)(service.url, init)).status).toBe(status)
    expect(service.requests).toHaveLength(1)
  })
})
