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
  it('sends the bytes as they were kept, and Express adds nothing', async () => {
    const body = Buffer.from([0, 255, 10, 13])
    const answer = await replay({ status: 418, headers: [['content-type', 'text/plain']], body })
      .post('/')
      .buffer()
      .parse((message, done) => {
        const chunks: Buffer[] = []
        message.on('data', (chunk) => chunks.push(chunk))
        message.on('end', () => done(null, Buffer.concat(chunks)))
      })
    expect(answer.status).toBe(418)
    expect(answer.body).toEqual(body)
    expect(answer.headers).toMatchObject({
      'content-type': 'text/plain',
      'content-length': '4',
      'cache-control': 'no-store',
      'idempotent-replayed': 'true',
    })
    expect(answer.headers).not.toHaveProperty('etag')
  })

  it('puts kept headers in the place of those already there, repeated ones included', async () => {
    const headers = [
      ['link', '</a>'],
      ['link', '</b>'],
    ] as const
    const answer = await replay({ headers }, { Link: '</old>', 'X-Other': '1' }).post('/')
    expect(answer.headers).toMatchObject({ link: '</a>, </b>', 'x-other': '1' })
  })

  it.each([204, 304])('has neither body nor length with %i', async (status) => {
    const answer = await replay({ status, body: Buffer.alloc(0) }).get('/')
    expect(answer.status).toBe(status)
    expect(answer.headers).not.toHaveProperty('content-length')
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

  it('has the first length to HEAD, or none', async () => {
    const body = Buffer.alloc(0)
    const known = await replay({ headers: [['content-length', '99']], body }).head('/')
    expect(known.headers['content-length']).toBe('99')
    const unknown = await replay({ body }).head('/')
    expect(unknown.headers).not.toHaveProperty('content-length')
  })
})
