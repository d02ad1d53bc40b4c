import { once } from 'node:events'
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  memoryStore,
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  ServiceAuthError,
  serviceOf,
} from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { authFor } from '../support/receiver/receiver.js'

const issuer = await createTestIssuer()
const store = memoryStore()
afterAll(async () => {
  store.close()
  await issuer.close()
})

/** A server that puts handlers behind one another, as Express does over HTTP/1.1. */
async function startServer(...handlers: RequestHandler[]) {
  const errors: unknown[] = []
  const sockets: Socket[] = []
  const serve = (request: Request, response: Response): void => {
    request.originalUrl = request.url
    const step = (index: number): void => {
      const next: NextFunction = (error?: unknown) => {
        if (error === undefined) return step(index + 1)
        errors.push(error)
        response.writeHead(599).end()
      }
      const handler = handlers[index]
      if (handler !== undefined) return void handler(request, response, next)
      // In pieces, as whatever has more to say.
      response.writeHead(200)
      response.write(serviceOf(request).name)
      setImmediate(() => response.end())
    }
    step(0)
  }
  const server = createServer((request: Http2ServerRequest, response: Http2ServerResponse) =>
    serve(request as unknown as Request, response as unknown as Response),
  )
  server.on('connection', (socket: Socket) => sockets.push(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(async () => {
    client.destroy()
    server.close()
    await once(server, 'close')
  })
  return { client, errors, sockets }
}

type Headers = Record<string, string | string[]>

async function call(client: ClientHttp2Session, headers: Headers, body?: string) {
  const method = body === undefined ? 'GET' : 'POST'
  const stream = client.request({ ':method': method, ':path': '/', ...headers })
  stream.end(body)
  const [head] = await once(stream, 'response')
  return { status: head[':status'], challenge: head['www-authenticate'], text: await text(stream) }
}

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

describe('over HTTP/2', () => {
  it('a caller is judged by the same rules', async () => {
    const guards = [authFor(issuer.policy({ callers: { billing: ['orders:read'] } }))]
    const { client, errors } = await startServer(...guards, requirePermissions('orders:read'))
    const good = issuer.token({ sub: 'billing', permissions: ['orders:read'] })
    expect(await call(client, bearer(good))).toMatchObject({ status: 200, text: 'billing' })

    const invalid = { status: 401, challenge: 'Bearer realm="service", error="invalid_token"' }
    expect(await call(client, {})).toMatchObject({
      status: 401,
      challenge: 'Bearer realm="service"',
    })
    expect(await call(client, bearer('x'))).toMatchObject(invalid)
    const flipped = `${good.slice(0, -2)}${good.endsWith('AA') ? 'BB' : 'AA'}`
    expect(await call(client, bearer(flipped))).toMatchObject(invalid)

    const others = [{ sub: 'billing', permissions: [] }, { sub: 'stranger' }]
    for (const claims of others) {
      expect(await call(client, bearer(issuer.token(claims)))).toMatchObject({ status: 403 })
    }
    expect(errors).toEqual([])
  })

  it('authenticate decides by the request, and by its headers', async () => {
    const auth = authFor(issuer.policy())
    const seen: unknown[] = []
    const { client } = await startServer(async (request, response) => {
      const { rawHeaders } = request
      for (const input of [request, { rawHeaders }, request.headers]) {
        const answer = await auth.authenticate(input)
        seen.push(answer.outcome === 'accepted' ? answer.service.name : answer.status)
      }
      response.writeHead(200).end()
    })
    await call(client, { ...bearer(issuer.token()), cookie: ['a=1', 'b=2'] })
    await call(client, bearer(issuer.token({ aud: 'x' })))
    expect(seen).toEqual(['billing', 'billing', 'billing', 401, 401, 401])
  })

  it('a token is used once', async () => {
    const { client } = await startServer(authFor(issuer.policy()), requireSingleUse({ store }))
    const token = bearer(issuer.token())
    expect((await call(client, token)).status).toBe(200)
    expect((await call(client, token)).status).toBe(401)
  })

  it('a key is a fault before anything else is looked at', async () => {
    const auth = authFor(issuer.policy())
    const { client, errors } = await startServer(
      auth,
      requireIdempotencyKey({ store, operation: 'create' }),
    )
    const withKey = { ...bearer(issuer.token()), 'idempotency-key': 'one' }
    const attempts = [
      call(client, withKey, '{"a":1}'),
      call(client, withKey, '{"a":2}'),
      call(client, { ...withKey, 'content-length': '7' }, '{"a":1}'),
      call(client, { ...withKey, 'idempotency-key': '' }, '{"a":1}'),
      call(client, bearer(issuer.token()), '{}'),
      call(client, bearer(issuer.token())),
    ]
    for (const answer of await Promise.all(attempts)) expect(answer.status).toBe(599)
    expect(errors).toHaveLength(attempts.length)
    for (const error of errors) {
      expect(error).toBeInstanceOf(ServiceAuthError)
      expect(error).toMatchObject({
        code: 'wrong_wiring',
        message: expect.stringMatching(/HTTP\/2\.0.*proxy/),
      })
    }
  })
})
