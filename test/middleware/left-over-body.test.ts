import { randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import express5, { type Request, type RequestHandler } from 'express'
import { memoryStore, requireIdempotencyKey, ServiceAuthError } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import {
  drain,
  type Framing,
  issuer,
  leave,
  type Post,
  startRoute,
  upload,
} from './body-readers.js'

const store = memoryStore()
afterAll(async () => {
  store.close()
  await issuer.close()
})

const FORM = 'application/x-www-form-urlencoded'
const UNREAD = /needs the body parsed/
const UNPARSED = /needs the option fingerprint/

const nothing: RequestHandler = (request, _response, next) => {
  request.body = null
  next()
}

/** What an adapter does that makes up a length of its own. */
const lengthInHeadersOnly: RequestHandler = (request, _response, next) => {
  const at = request.rawHeaders.findIndex((name) => name.toLowerCase() === 'content-length')
  request.rawHeaders.splice(at, 2)
  next()
}

describe.each(EXPRESS_MAJORS)(
  'the body of a request with a key, on $major',
  ({ major, express }) => {
    const is4 = major === 'Express 4'
    const start = (...readers: RequestHandler[]) =>
      startRoute(express, [...readers, requireIdempotencyKey({ store })], (_req, res) => {
        res.json({ id: randomUUID() })
      })

    /** Neither body is answered, and no handler runs. */
    async function expectFault(readers: RequestHandler[], posts: Omit<Post, 'key'>[], why: RegExp) {
      const { post, receiver } = await start(...readers)
      const key = randomUUID()
      for (const given of posts) expect((await post({ ...given, key })).status).toBe(FAULT_STATUS)
      expect(receiver.handled).toBe(0)
      expect(receiver.errors).toHaveLength(posts.length)
      for (const error of receiver.errors) {
        expect(error).toBeInstanceOf(ServiceAuthError)
        expect(error).toMatchObject({ code: 'wrong_wiring', message: expect.stringMatching(why) })
      }
    }

    /** The first body is replayed to its retry and to nothing else. */
    async function expectToldApart(
      readers: RequestHandler[],
      { body, ...way }: Omit<Post, 'key'>,
      others: Omit<Post, 'key'>[],
    ) {
      const { post, receiver } = await start(...readers)
      const key = randomUUID()
      const first = await post({ ...way, body, key })
      expect(receiver.errors).toEqual([])
      expect(first.status).toBe(200)
      for (const other of others) expect((await post({ ...way, ...other, key })).status).toBe(422)
      const retry = await post({ ...way, body, key })
      expect(retry.text).toBe(first.text)
      expect(retry.headers['idempotent-replayed']).toBe('true')
      expect(receiver.handled).toBe(1)
    }

    it.each<[string, RequestHandler[], string, Framing?]>([
      ['json', [express.json()], 'application/json'],
      ['json in chunks', [express.json()], 'application/json', 'chunked'],
      ['json in gzip', [express.json()], 'application/json', 'gzip'],
      ['a shim and json', [leave({}), express.json()], 'application/json'],
      ['json and a shim', [express.json(), leave({})], 'application/json'],
      ['urlencoded', [express.urlencoded({ extended: false })], FORM],
      ['qs', [express.urlencoded({ extended: true })], FORM, 'chunked'],
      ['raw', [express.raw({ type: '*/*' })], 'application/x-ndjson'],
      ['raw of multipart', [express.raw({ type: '*/*' })], 'multipart/form-data; boundary=x'],
      ['text', [express.text({ type: '*/*' })], 'application/vnd.api+json', 'chunked'],
      ['json, then a reader by hand', [express.json(), drain], 'application/json'],
    ])('is told apart by %s', async (_name, readers, type, framing = 'length') => {
      const way = { type, framing }
      const others = [{ body: '{"a":2}' }, { body: '{"b":1}' }]
      await expectToldApart(readers, { ...way, body: '{"a":1}' }, others)
    })

    const NOT_MATCHING = [
      express.json({ type: 'application/json' }),
      express.urlencoded({ extended: false }),
    ]
    const LEFT: [string, RequestHandler[]][] = [
      ['nothing', [drain]],
      ['what parsers leave', [...NOT_MATCHING, drain]],
      ['what the parsers of 5 leave', [express5.json({ type: 'x/y' }), drain]],
      ['{} by a shim after it', [drain, leave({})]],
      ['{} by a shim before it', [leave({}), drain]],
      ['an empty text', [leave(''), drain]],
      ['null', [nothing, drain]],
    ]
    it.each(LEFT)('is a fault where it was read by hand and left %s', async (_left, readers) => {
      for (const type of ['application/vnd.api+json', undefined]) {
        for (const framing of ['length', 'chunked'] as const) {
          const posts = ['{"a":1}\n', '{"a":2}\n'].map((body) => ({ type, framing, body }))
          await expectFault(readers, posts, UNPARSED)
        }
      }
    })

    it.each([
      ['a form', FORM, ['amount=1', 'amount=2']],
      ['two characters of text', 'text/plain', ['42', '43']],
    ])('is a fault where %s was read by hand beside a parser of JSON', async (_, type, bodies) => {
      const posts = bodies.map((body) => ({ type, body }))
      await expectFault([express.json(), leave({}), drain], posts, UNPARSED)
    })

    it('is one for members and fields in another order', async () => {
      const readers = [express.json(), express.urlencoded({ extended: false })]
      const { post, receiver } = await start(...readers)
      for (const [type, one, other] of [
        ['application/json', '{"a":1,"b":[{"c":2,"d":3}]}', '{"b":[{"d":3,"c":2}],"a":1}'],
        [FORM, 'a=1&b=2&a=3', 'b=2&a=1&a=3'],
      ] as const) {
        const key = randomUUID()
        const first = await post({ type, body: one, key })
        const second = await post({ type, body: other, key })
        expect(second.headers['idempotent-replayed']).toBe('true')
        expect(second.text).toBe(first.text)
      }
      const key = randomUUID()
      expect((await post({ type: FORM, body: 'a=3&a=1&b=2', key })).status).toBe(200)
      expect((await post({ type: FORM, body: 'a=1&a=3&b=2', key })).status).toBe(422)
      expect(receiver.handled).toBe(3)
    })

    it('may be left to the handler with the option fingerprint', async () => {
      const fingerprint = (request: Request) => String(request.headers['x-digest'])
      const middleware = requireIdempotencyKey({ store, fingerprint })
      const seen: string[] = []
      const { post, receiver } = await startRoute(express, [middleware], async (req, res) => {
        seen.push(await text(req))
        res.json({ id: randomUUID() })
      })
      for (const framing of ['length', 'chunked', 'gzip'] as const) {
        const key = randomUUID()
        const body = 'streamed '.repeat(100_000)
        const first = await post({ key, framing, body })
        expect(first.status).toBe(200)
        expect((await post({ key, framing, body })).text).toBe(first.text)
        if (framing !== 'gzip') expect(seen.pop()).toBe(body)
      }
      expect(receiver.errors).toEqual([])
    })

    it('is a fault where nobody has read it, in whatever framing', async () => {
      for (const framing of ['length', 'chunked', 'gzip'] as const) {
        const posts = ['{"a":1}', '{"a":2}', '{}', ''].map((body) => ({ body, framing }))
        // No bytes of no announced length are no body.
        const sent = framing === 'length' ? posts.slice(0, 3) : posts
        for (const readers of [[], [leave({})], [leave({ a: 1 })], NOT_MATCHING]) {
          await expectFault(readers, sent, UNREAD)
        }
      }
    })

    it('is a fault where it is multipart', async () => {
      const type = 'multipart/form-data; boundary=x'
      const posts = ['1', '2'].map((file) => ({ type, body: `--x\r\n\r\n${file}\r\n--x--` }))
      await expectFault([upload], posts, UNPARSED)
      await expectFault([express.json(), drain], posts, UNPARSED)
    })

    /** Where the parsers of 5 leave no mark, the length or an exact media type has to tell. */
    it.each<[string, string, Framing, boolean]>([
      ['application/json', '{ }', 'length', true],
      ['application/json', '{}', 'chunked', true],
      ['application/json', '', 'chunked', true],
      ['application/json', '{}', 'gzip', true],
      ['application/problem+json; charset=utf-8', '{}', 'length', true],
      ['text/anything', '{}', 'length', is4],
      ['application/json; charset=utf-8', '{}\n', 'length', true],
      ['application/json', '{    }', 'length', is4],
      ['application/problem+json', '{ }', 'length', is4],
      ['text/anything', '{}', 'chunked', is4],
      [FORM, '&', 'length', is4],
      [FORM, '&', 'chunked', true],
      ['text/plain', '', 'chunked', is4],
      ['application/octet-stream', '', 'chunked', true],
    ])('is read as %s %j by %s: %s', async (type, body, framing, isTold) => {
      const readers = [
        express.json({ type: ['*/json', '+json', 'text/anything'] }),
        express.urlencoded({ extended: false }),
        express.text(),
        express.raw(),
      ]
      if (isTold) await expectToldApart(readers, { type, body, framing }, [{ body: '{"a":1}' }])
      else await expectFault(readers, [{ type, body, framing }], UNPARSED)
    })

    it('is told apart by its length where it is {} for no reason but its media type', async () => {
      const way = { type: 'application/json', body: '{  }' }
      const ofAnotherLength = { body: '{ }' }
      // The parsers of 4 say that they have read it: there, all forms of `{}` are one.
      if (!is4) await expectToldApart([express.json()], way, [ofAnotherLength])
      await expectToldApart([drain, leave({})], way, [ofAnotherLength])
    })

    it('is a fault where a shim has left {} and nobody has read it, whatever its type', async () => {
      for (const type of ['application/json', FORM]) {
        for (const framing of ['length', 'chunked', 'gzip'] as const) {
          const posts = ['{ }', '{"a":1}', '&'].map((body) => ({ type, framing, body }))
          await expectFault([leave({})], posts, UNREAD)
        }
      }
    })

    it('is none with content-length 0, which differs from {}', async () => {
      const way = { type: 'application/json', body: '' }
      for (const readers of [[express.json()], [], [leave({})], [drain, leave({})]]) {
        await expectToldApart(readers, way, [])
      }
      await expectToldApart([express.json()], way, [{ body: '{}' }])
    })

    it('counts though a shim has removed its length', async () => {
      const inflate: RequestHandler = (request, _response, next) => {
        delete request.headers['content-length']
        next()
      }
      const posts = ['{"a":1}', '{"a":2}'].map((body) => ({ type: 'application/x-ndjson', body }))
      const lacking = /content-length/
      await expectFault([inflate, drain, leave({})], posts, UNPARSED)
      await expectFault([lengthInHeadersOnly, drain, leave({})], posts, lacking)
    })
  },
)
