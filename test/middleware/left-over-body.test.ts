import express5, { type RequestHandler } from 'express'
import { memoryStore, requireIdempotencyKey, ServiceAuthError } from 'express-service-auth'
import { createTestIssuer } from 'express-service-auth/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { authFor, EXPRESS_MAJORS, FAULT_STATUS, startReceiver } from '../contract/receiver.js'

const issuer = await createTestIssuer()
const store = memoryStore()
afterAll(async () => {
  store.close()
  await issuer.close()
})

/** Reads the body into somewhere else than `req.body`. */
const upload: RequestHandler = (req, _res, next) => {
  req.resume().on('end', next)
}

describe.each(EXPRESS_MAJORS)('the body of a request with a key, on $major', ({ express }) => {
  const start = (...parsers: RequestHandler[]) =>
    startReceiver({
      express,
      mount(app) {
        app.use(authFor(issuer.policy()))
        app.post('/', ...parsers, requireIdempotencyKey({ store }))
      },
    })
  const post = (type: string, body: string, key: string): RequestInit => ({
    method: 'POST',
    headers: { 'content-type': type, 'idempotency-key': key },
    body,
  })

  test('is never taken for the {} that a parser left before somebody else read it', async () => {
    const receiver = await start(express5.json(), express.json(), upload)
    for (const type of ['application/octet-stream', 'application/xml']) {
      const answer = await receiver.call(issuer.token(), post(type, 'a file', `left-${type}`))
      expect(answer.status).toBe(FAULT_STATUS)
    }
    expect(receiver.handled).toBe(0)
    expect(receiver.errors[0]).toBeInstanceOf(ServiceAuthError)
  })

  test.each([
    ['application/json', '{}'],
    ['application/problem+json; charset=utf-8', '{}'],
    ['application/x-www-form-urlencoded', '&'],
  ])('may be empty where a parser has read it as %s', async (type, body) => {
    const parsers = [express.json({ type: '*/json' }), express.json({ type: '*/*+json' })]
    const receiver = await start(...parsers, express.urlencoded({ extended: false }))
    const key = `empty-${express.application.length}-${type.replace(/\W/g, '')}-${Math.random()}`
    expect((await receiver.call(issuer.token(), post(type, body, key))).status).toBe(200)
  })

  test('is replayed with its headers to the byte, beyond ASCII too', async () => {
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use(authFor(issuer.policy()))
        app.post('/', express.json(), requireIdempotencyKey({ store }))
      },
      handler: (_req, res) => {
        res.set('Content-Disposition', 'attachment; filename="é.txt"').send('a')
      },
    })
    const request = post('application/json', '{"a":1}', `latin-${Math.random()}`)
    const first = await receiver.call(issuer.token(), request)
    const replay = await receiver.call(issuer.token(), request)
    expect(replay.headers.get('idempotent-replayed')).toBe('true')
    const name = 'content-disposition'
    expect(replay.headers.get(name)).toBe(first.headers.get(name))
  })
})
