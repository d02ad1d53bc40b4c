import { configure } from '@codegenie/serverless-express'
import type { ErrorRequestHandler, Express } from 'express'
import {
  memoryStore,
  requireIdempotencyKey,
  requireSingleUse,
  ServiceAuthError,
  serviceAuth,
} from 'express-service-auth'
import serverless from 'serverless-http'
import { describe, expect, it } from 'vitest'
import { issuer } from '../support/issuer/issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { newKey } from '../support/receiver/order-calls.js'

interface LambdaAnswer {
  readonly statusCode: number
  readonly headers?: Readonly<Record<string, unknown>>
  /** In place of `headers`, in answers to events of format 1.0. */
  readonly multiValueHeaders?: Readonly<Record<string, unknown>>
  readonly body: string
}

type Lambda = (event: object) => Promise<LambdaAnswer>

const context = { callbackWaitsForEmptyEventLoop: true }

/** The option that the message names. */
const HOOK = {
  request(request: { headers: object; rawHeaders: string[] }) {
    request.rawHeaders = Object.entries(request.headers).flat().map(String)
  },
}
const HOOK_TEXT =
  'request: (request) => { request.rawHeaders = Object.entries(request.headers).flat().map(String) }'

const ADAPTERS: [name: string, wrap: (app: Express) => Lambda][] = [
  [
    'serverless-http with its hook',
    (app) => (event) => serverless(app, HOOK)(event, context) as Promise<LambdaAnswer>,
  ],
  [
    '@codegenie/serverless-express 4',
    (app) => (event) => configure({ app })(event, context as never, () => {}) as never,
  ],
]

interface Asked {
  readonly method: string
  readonly authorization?: string
  readonly key?: string
  readonly body?: string
}

/** Both payload formats of API Gateway. */
const EVENTS: [version: string, eventOf: (asked: Asked) => object][] = [
  [
    '2.0',
    ({ method, body = null, ...asked }) => ({
      version: '2.0',
      rawPath: '/orders',
      rawQueryString: '',
      headers: headersOf(asked, body),
      requestContext: { http: { method, path: '/orders', sourceIp: '127.0.0.1' } },
      body,
      isBase64Encoded: false,
    }),
  ],
  [
    '1.0',
    ({ method, body = null, ...asked }) => {
      const headers = headersOf(asked, body)
      const lists = Object.entries(headers).map(([name, value]) => [name, [value]])
      return {
        version: '1.0',
        resource: '/orders',
        path: '/orders',
        httpMethod: method,
        headers,
        multiValueHeaders: Object.fromEntries(lists),
        queryStringParameters: null,
        multiValueQueryStringParameters: null,
        requestContext: { identity: { sourceIp: '127.0.0.1' } },
        body,
        isBase64Encoded: false,
      }
    },
  ],
]

const headersOf = ({ authorization, key }: Partial<Asked>, body: string | null) => ({
  Host: 'orders.example',
  ...(authorization !== undefined && { Authorization: authorization }),
  ...(key !== undefined && { 'Idempotency-Key': key }),
  ...(body !== null && { 'Content-Type': 'application/json' }),
})

const bearer = (): string => `Bearer ${issuer.token()}`

describe.each(EXPRESS_MAJORS)('On a serverless platform, $major', ({ express }) => {
  function orders() {
    const written: unknown[] = []
    const errors: unknown[] = []
    const app = express().set('env', 'test')
    const store = memoryStore()
    // @codegenie/serverless-express ends the stream of the body at once, whether it is read or not.
    app.use(express.json(), serviceAuth(issuer.policy()))
    app.get('/orders', requireSingleUse({ store }), (_req, res) => void res.json({ written }))
    app.post('/orders', requireIdempotencyKey({ store }), (req, res) => {
      written.push(req.body)
      res.status(201).json({ id: written.length })
    })
    const keepError: ErrorRequestHandler = (error, _req, res, _next) => {
      errors.push(error)
      res.status(500).end()
    }
    app.use(keepError)
    return { app, written, errors }
  }

  it('names the hook that serverless-http needs', async () => {
    const { app, errors } = orders()
    const [[, eventOf] = []] = EVENTS
    const event = eventOf?.({ method: 'GET', authorization: bearer() }) ?? {}
    const answer = await serverless(app)(event, context)
    expect(answer).toMatchObject({ statusCode: 500 })
    expect(errors).toHaveLength(1)
    expect(errors[0]).toBeInstanceOf(ServiceAuthError)
    expect(errors[0]).toMatchObject({ code: 'wrong_wiring' })
    expect(String(errors[0])).toContain(HOOK_TEXT)
  })

  describe.each(ADAPTERS)('%s', (_name, wrap) => {
    it.each(EVENTS)('judges a request of format %s as on a server', async (_version, eventOf) => {
      const { app, written, errors } = orders()
      const lambda = wrap(app)
      const token = bearer()
      const statusOf = async (asked: Asked) => (await lambda(eventOf(asked))).statusCode
      expect(await statusOf({ method: 'GET', authorization: token })).toBe(200)
      expect(await statusOf({ method: 'GET', authorization: token })).toBe(401)
      expect(await statusOf({ method: 'GET', authorization: 'Bearer x' })).toBe(401)
      expect(await statusOf({ method: 'GET' })).toBe(401)

      const key = newKey()
      const write = (body: string) =>
        lambda(eventOf({ method: 'POST', authorization: bearer(), key, body }))
      expect(await write('{"item":"lamp"}')).toMatchObject({ statusCode: 201, body: '{"id":1}' })
      const replay = await write('{"item":"lamp"}')
      expect(replay).toMatchObject({ statusCode: 201, body: '{"id":1}' })
      const headers = replay.headers ?? replay.multiValueHeaders
      expect(String(headers?.['idempotent-replayed'])).toBe('true')
      expect((await write('{"item":"desk"}')).statusCode).toBe(422)
      expect(written).toEqual([{ item: 'lamp' }])
      expect(errors).toEqual([])
    })
  })
})
