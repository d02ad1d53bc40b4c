import { once } from 'node:events'
import { type IncomingMessage, ServerResponse } from 'node:http'
import express, { type RequestHandler } from 'express'
import {
  acceptOneOf,
  memoryStore,
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  serviceAuth,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { serve } from '../support/receiver/serve.js'

const issuer = await createTestIssuer()
const store = memoryStore()
afterAll(async () => {
  auth.close()
  store.close()
  await issuer.close()
})

const auth = serviceAuth(issuer.policy())
const MIDDLEWARES: [string, RequestHandler][] = [
  ['serviceAuth', auth],
  ['acceptOneOf', acceptOneOf([{ name: 'service', ...serviceCredential(auth) }])],
  ['sessionCredential', sessionCredential((_request, _response, next) => next()).verify],
  ['requirePermissions', requirePermissions('orders:read')],
  ['requireSingleUse', requireSingleUse({ store })],
  ['requireIdempotencyKey', requireIdempotencyKey({ store })],
]

/** As express-ws does: the handlers of the path get the WebSocket in place of the request, and nothing else is set up. */
async function callWithWebSocket(middleware: RequestHandler) {
  const { server, port, close } = await serve(() => {})
  const sockets = new WebSocketServer({ noServer: true })
  const errors: unknown[] = []
  server.on('upgrade', (request: IncomingMessage, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const given = [webSocket, request, (error: unknown) => errors.push(error)]
      Reflect.apply(middleware, undefined, given)
    })
  })
  const client = new WebSocket(`ws://127.0.0.1:${port}`)
  const [code] = (await once(client, 'close')) as [number]
  await close()
  return { code, errors }
}

describe.each(MIDDLEWARES)('%s', (name, middleware) => {
  it('says that it is the middleware, when it is called without a request', () => {
    const call = middleware as unknown as () => RequestHandler
    expect(() => express().use(call())).toThrow(
      new TypeError(
        `${name} was called without a request: pass the middleware itself, app.use(auth) and not app.use(auth())`,
      ),
    )
  })

  it('closes a WebSocket that it is given, and says where it belongs', async () => {
    const { code, errors } = await callWithWebSocket(middleware)
    expect(code).toBe(1011)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatchObject({
      code: 'wrong_wiring',
      message: expect.stringMatching(new RegExp(`${name} was given a WebSocket .* before app.ws`)),
    })
  })
})

it('guards a WebSocket as a middleware of its path, which gets the request for the upgrade', async () => {
  const app = express()
  app.use('/echo', auth)
  const { server, port, close } = await serve(() => {})
  const sockets = new WebSocketServer({ noServer: true })
  // Where the upgrade waits for the guard. express-ws upgrades first: a refusal then ends the WebSocket.
  server.on('upgrade', (request: IncomingMessage, socket, head) => {
    const response = new ServerResponse(request)
    response.writeHead = ((status: number) => {
      // Later versions of Node ask for the head a second time, because this stand-in writes none to the response.
      if (status > 200 && !socket.writableEnded)
        socket.end(`HTTP/1.1 ${status} \r\nContent-Length: 0\r\n\r\n`)
    }) as typeof response.writeHead
    const accept = () =>
      sockets.handleUpgrade(request, socket, head, (webSocket) => webSocket.send('hello'))
    ;(app as unknown as (...args: unknown[]) => void)(request, response, accept)
  })
  const connect = (headers: Record<string, string>) =>
    new WebSocket(`ws://127.0.0.1:${port}/echo`, { headers })
  const accepted = connect({ authorization: `Bearer ${issuer.token()}` })
  expect(String((await once(accepted, 'message'))[0])).toBe('hello')
  accepted.close()
  const refused = connect({})
  const [, answer] = (await once(refused, 'unexpected-response')) as [unknown, IncomingMessage]
  expect(answer.statusCode).toBe(401)
  await close()
})
