import { createServer } from 'node:http'
import express from 'express'
import supertest from 'supertest'
import { describe, expect, it } from 'vitest'
import type { StoredResult } from '../../../src/idempotency/buffered-response/stored-result.js'
import { replayResult } from '../../../src/middleware/idempotency-key/answer.js'

const replay = (over: Partial<StoredResult>, before: Record<string, string> = {}) => {
  const app = express().use((_req, res) => {
    res.set(before)
    replayResult(res, { status: 200, headers: [], body: Buffer.from('body'), ...over })
  })
  return supertest(app)
}

describe('A replay', () => {
  it('puts kept headers in the place of those already there, repeated ones included', async () => {
    const headers = [
      ['link', '</a>'],
      ['link', '</b>'],
    ] as const
    const answer = await replay({ headers }, { Link: '</old>', 'X-Other': '1' }).post('/')
    expect(answer.headers).toMatchObject({ link: '</a>, </b>', 'x-other': '1' })
  })

  it.each<[string, number]>([
    ['POST', 204],
    ['POST', 304],
    ['HEAD', 200],
  ])('is sent where Node takes no body: %s, %i', async (method, status) => {
    const app = express().use((_req, res) =>
      replayResult(res, { status, headers: [], body: Buffer.alloc(0) }),
    )
    const server = createServer({ rejectNonStandardBodyWrites: true }, app)
    const answer = await supertest(server)[method === 'HEAD' ? 'head' : 'post']('/')
    expect(answer.status).toBe(status)
  })
})
