import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import type express from 'express'
import type { RequestHandler } from 'express'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'

type Express = typeof express

/** How a body comes over the wire. */
export type Framing = 'length' | 'chunked' | 'gzip'

export interface Post {
  readonly key: string
  readonly type?: string | undefined
  readonly body: string | Uint8Array
  readonly framing?: Framing
}

/** Reads the body by hand, and leaves `req.body` as it is. */
export const drain: RequestHandler = (request, _response, next) => {
  // Where a parser has read it already, there is no further end.
  if (request.readableEnded) return next()
  request.on('end', () => next()).resume()
}

/** A shim before or after parsers. */
export const leave =
  (body: unknown): RequestHandler =>
  (request, _response, next) => {
    request.body ??= body
    next()
  }

/** Reads fields into `req.body` and files elsewhere, as parsers of multipart do. */
export const upload: RequestHandler = (request, response, next) => {
  if (!request.is('multipart')) return next()
  drain(request, response, () => {
    request.body = { field: 'the same' }
    next()
  })
}

export const issuer = await createTestIssuer()

/** A route behind these readers and what comes then, and a way to call it. */
export async function startRoute(
  major: Express,
  handlers: readonly RequestHandler[],
  answer: RequestHandler,
) {
  const receiver = await startReceiver({
    express: major,
    mount(app) {
      app.use(authFor(issuer.policy()))
      app.post('/', ...handlers)
    },
    handler: answer,
  })
  const token = issuer.token()
  const post = (given: Post): Promise<Answer> => send(receiver.port, token, given)
  return { post, receiver }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Not by `fetch`: it gives an empty stream a length. */
async function send(port: number, token: string, given: Post): Promise<Answer> {
  const { key, type, body, framing = 'length' } = given
  const isEncoded = framing === 'gzip'
  const bytes = isEncoded ? gzipSync(body) : Buffer.from(body)
  const sent = request({ host: '127.0.0.1', port, method: 'POST', agent: false })
  sent.setHeader('authorization', `Bearer ${token}`).setHeader('idempotency-key', key)
  if (type !== undefined) sent.setHeader('content-type', type)
  if (isEncoded) sent.setHeader('content-encoding', framing)
  if (framing === 'chunked') sent.setHeader('transfer-encoding', 'chunked')
  else sent.setHeader('content-length', bytes.length)
  sent.end(bytes)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    text: await text(answer),
  }
}
