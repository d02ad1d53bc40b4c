import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import express5, { type RequestHandler } from 'express'
import { memoryStore, requireIdempotencyKey } from 'express-service-auth'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import {
  drain,
  drainedBytes,
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

const TYPES = [
  'application/json',
  'application/vnd.api+json',
  'application/x-ndjson',
  'application/x-www-form-urlencoded',
  'application/octet-stream',
  'text/plain; charset=utf-8',
  'multipart/form-data; boundary=x',
  undefined,
]

/** Bodies of which any two are likely to look alike to somebody. */
const body = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom('', '{}', '{ }', '[]', '{"a":1}', '{"a":2}', '{"a":-0}'),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('{"a":0}', '1\n', '2\n', 'null', '""', '0', '-0', '1e400'),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('&', '&&', 'a=1', 'a=2', 'a=1&a=2', 'a[]=1', '__proto__[a]=1'),
  },
  { weight: 1, arbitrary: fc.constantFrom('{"a":1}\n{"a":2}', '\ufeff', '\ufeff{}', '\u0000') },
  { weight: 1, arbitrary: fc.json({ maxDepth: 2 }) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 4 }) },
)
const framing = fc.constantFrom<Framing>('length', 'chunked', 'gzip', 'br')
const way = fc.record({ type: fc.constantFrom(...TYPES), framing, body })

const EMPTY_FORM = { type: 'application/x-www-form-urlencoded', framing: 'length' } as const
/** The parser makes objects of different prototypes of them. */
const EMPTY_FORMS = [
  { ...EMPTY_FORM, body: '&' },
  { ...EMPTY_FORM, body: '\ufeff' },
] as const

describe.each(EXPRESS_MAJORS)('two bodies under one key, on $major', ({ express }) => {
  const json = [express.json({ type: ['json', '+json'], strict: false })]
  const all = [
    ...json,
    express.urlencoded({ extended: false }),
    express.text(),
    express.raw({ type: 'application/octet-stream' }),
  ]
  const BY_HAND_WITH_A_SHIM = [leave({}), drain, leave({})]
  const BY_HAND_BEHIND_OTHERS = [express5.json(), express.json(), drain]
  /** Somebody who reads these types by hand and leaves `{}` looks like their parser, unless their length tells. */
  const LOOKS_PARSED = new Map<RequestHandler[], string[]>([
    [BY_HAND_WITH_A_SHIM, ['application/json', EMPTY_FORM.type]],
    [BY_HAND_BEHIND_OTHERS, [EMPTY_FORM.type]],
  ])
  const READERS: [string, RequestHandler[]][] = [
    ['nobody', []],
    ['nobody, with a shim', [leave({})]],
    ['json', [express.json()]],
    ['json and a shim', [leave({}), ...json, leave({})]],
    ['qs', [express.urlencoded({ extended: true })]],
    ['raw', [express.raw({ type: () => true })]],
    ['text', [express.text({ type: () => true })]],
    ['json of all types', [express.json({ type: () => true, strict: false })]],
    ['all four', all],
    ['all four, then by hand', [...all, drain]],
    ['all four and a shim, then by hand', [leave({}), ...all, drain, leave({})]],
    ['parsers of the other major, then by hand', BY_HAND_BEHIND_OTHERS],
    ['by hand', [drain]],
    ['by hand, with a shim', BY_HAND_WITH_A_SHIM],
    ['an upload', [upload]],
    ['a shim of nothing, then by hand', [leave(''), drain]],
  ]

  it.each(READERS)(
    'never get one answer unless they are one, read by %s',
    async (_name, readers) => {
      const route = await startRoute(
        express,
        [...readers, requireIdempotencyKey({ store })],
        // What the handler can see of the body. A clone, because prototypes are not a part of it.
        (request, response) => {
          const seen = [structuredClone(request.body ?? {}), drainedBytes(request)]
          response.type('text').send(inspect(seen, { depth: 50 }))
        },
      )
      const own = (post: Omit<Post, 'key'>) => route.post({ ...post, key: randomUUID() })
      const looksParsed = ({ type = '', framing, body }: Omit<Post, 'key'>) =>
        LOOKS_PARSED.get(readers)?.includes(type) === true &&
        (framing !== 'length' || (type === 'application/json' && Buffer.byteLength(body) <= 5))
      await fc.assert(
        fc.asyncProperty(way, way, async (one, other) => {
          fc.pre(!isTooShortToTell(one) && !isTooShortToTell(other))
          fc.pre(!looksParsed(one) || !looksParsed(other))
          const key = randomUUID()
          const first = await route.post({ ...one, key })
          const second = await route.post({ ...other, key })
          if (second.headers['idempotent-replayed'] !== undefined) {
            expect(first.status).toBe(200)
            expect(second.text).toBe((await own(other)).text)
          } else if (first.status === 200) {
            expect([400, 415, 422, 500, FAULT_STATUS]).toContain(second.status)
          }
          // A retry is one, always.
          const retry = await route.post({ ...one, key })
          if (first.status === 200) expect(retry.text).toBe(first.text)
        }),
        { numRuns: 8, examples: [[...EMPTY_FORMS]] },
      )
    },
  )
})

/** Two bytes of JSON that nobody has parsed look like the `{}` that somebody has left. */
const isTooShortToTell = ({ type, body: sent, framing: framed }: Omit<Post, 'key'>): boolean =>
  type?.endsWith('json') === true &&
  framed === 'length' &&
  Buffer.byteLength(sent) === 2 &&
  sent !== '{}'
