import { configure } from '@codegenie/serverless-express'
import type { ErrorRequestHandler, Express } from 'express'
import {
  memoryStore,
  requireIdempotencyKey,
  requireSingleUse,
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

const ADAPTERS: readonly [name: string, wrap: (app: Express) => Lambda][] = [
  [
    'serverless-http with its hook',
    (app) => (event) => serverless(app, HOOK)(event, context) as Promise<LambdaAnswer>,
  ],
  [
    '@codegenie/serverless-express 4',
    (app) => (event) => configure({ app })(event, context as never, () => {}) as never,
  ],
]

/** In a payload format of API Gateway: 2.0, or 1.0. */
function eventIn(version: string, method: string, sent: Record<string, string>, body?: string) {
  const headers = { Host: 'orders.example', ...sent }
  const common = { version, headers, body: body ?? null, isBase64Encoded: false }
  const path = '/orders'
  if (version === '2.0') {
    const requestContext = { http: { method, path, sourceIp: '127.0.0.1' } }
    return { ...common, rawPath: path, rawQueryString: '', requestContext }
  }
  return {
    ...{ ...common, resource: path, path, httpMethod: method },
    multiValueHeaders: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, [value]]),
    ),
    queryStringParameters: null,
    multiValueQueryStringParameters: null,
    requestContext: { identity: { sourceIp: '127.0.0.1' } },
  }
}

const bearer = () => ({ Authorization: `Bearer ${issuer.token()}` })

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
    const answer = await serverless(app)(eventIn('2.0', 'GET', bearer()), context)
    expect(answer).toMatchObject({ statusCode: 500 })
    expect(errors).toMatchObject([{ code: 'wrong_wiring' }])
    expect(String(errors[0])).toContain(HOOK_TEXT)
  })

  describe.each(ADAPTERS)('%s', (_name, wrap) => {
    it.each(['1.0', '2.0'])('judges a request of format %s as on a server', async (version) => {
      const { app, written, errors } = orders()
      const lambda = wrap(app)
      const read = async (headers: Record<string, string>) =>
        (await lambda(eventIn(version, 'GET', headers))).statusCode
      const token = bearer()
      expect(await read(token)).toBe(200)
      expect(await read(token)).toBe(401)
      expect(await read({})).toBe(401)

      const key = newKey()
      const write = (body: string) => {
        const headers = { 'Idempotency-Key': key, 'Content-Type': 'application/json' }
        return lambda(eventIn(version, 'POST', { ...headers, ...bearer() }, body))
      }
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
