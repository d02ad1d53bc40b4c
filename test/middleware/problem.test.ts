import type { Response } from 'express'
import express from 'express'
import supertest from 'supertest'
import { describe, expect, it } from 'vitest'
import type { IdempotencyRefusal } from '../../src/idempotency/event.js'
import { sendProblem } from '../../src/middleware/problem.js'

const TABLE: [IdempotencyRefusal, number, string][] = [
  ['key_missing', 400, 'idempotency-key-missing'],
  ['key_invalid', 400, 'idempotency-key-invalid'],
  ['key_reused', 422, 'idempotency-key-reused'],
  ['request_in_progress', 409, 'request-in-progress'],
  ['outcome_unknown', 409, 'outcome-unknown'],
  ['result_not_stored', 409, 'result-not-stored'],
]

const app = (send: (res: Response) => void) => express().use((_req, res) => send(res))

describe('A problem', () => {
  it.each(TABLE)('is sent as the contract has it: %s', async (refusal, status, type) => {
    let told: number | undefined
    const answer = await supertest(app((res) => (told = sendProblem(res, refusal)))).post('/')
    expect([answer.status, told]).toEqual([status, status])
    expect(answer.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'content-length': String(answer.text.length),
      'cache-control': 'no-store',
    })
    expect(answer.headers).not.toHaveProperty('retry-after')
    const { title, ...problem } = JSON.parse(answer.text)
    expect(problem).toEqual({ type: `urn:express-service-auth:${type}`, status })
    expect(title).toMatch(/\w/)
  })

  it('says when to come again, and has no body to HEAD', async () => {
    const answer = await supertest(
      app((res) => void sendProblem(res, 'request_in_progress', 7)),
    ).head('/')
    expect(answer.headers['retry-after']).toBe('7')
    expect(answer.text ?? '').toBe('')
  })
})
