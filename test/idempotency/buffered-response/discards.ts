import type { ErrorRequestHandler, Express, RequestHandler, Response } from 'express'
import { bufferResponse } from '../../../src/idempotency/buffered-response/buffer-response.js'
import { takeSnapshot } from '../../../src/idempotency/buffered-response/discard.js'
import { rawRequest } from '../../support/network/raw-exchange.js'
import type { ExpressModule } from '../../support/receiver/express-majors.js'
import { serve } from '../../support/receiver/serve.js'

/** When an answer is thrown away. */
export const MOMENTS = ['held', 'ended', 'opening'] as const

export interface Discarding {
  readonly moment: (typeof MOMENTS)[number] | 'never'
  /** Who answers then: a refusal, an error middleware, or the same a little later. */
  readonly answer: 'refuse' | 'next' | 'later'
  readonly handler: RequestHandler
  readonly inner?: RequestHandler
  readonly outer?: readonly RequestHandler[]
  readonly limit?: number
  /** Is told what the response was like when it had been discarded. */
  readonly told?: unknown[]
}

export interface DiscardBench {
  readonly port: number
  /** Returns the path by which it is called. */
  mount(discarding: Discarding): string
  /** The answers as they are without anything before them. */
  bare(): Promise<{ refuse: string; next: string; head: string }>
  last(): Held | undefined
  close(): Promise<void>
}

const BODY = JSON.stringify({ title: 'Service Unavailable', status: 503 })

/** As the middlewares refuse. */
function refuse(response: Response): void {
  response.statusCode = 503
  response.setHeader('Content-Type', 'application/problem+json')
  response.setHeader('Content-Length', String(Buffer.byteLength(BODY)))
  response.setHeader('Retry-After', '0')
  response.end(response.req.method === 'HEAD' ? undefined : BODY)
}

const answerError: ErrorRequestHandler = (error, _request, response, _next) => {
  response.status(500).json({ error: String(error.message) })
}

/** What helmet does, and who sets a list. */
const setOutside: RequestHandler = (_request, response, next) => {
  response.setHeader('X-Frame-Options', 'SAMEORIGIN')
  response.setHeader('x-lower', '1')
  response.setHeader('X-List', ['a', 'b'])
  next()
}

export async function openDiscards(express: ExpressModule): Promise<DiscardBench> {
  const app = express().set('env', 'test') as Express
  let mounted = 0
  let last: Held | undefined
  app.use(setOutside)
  app.get('/bare/refuse', (_request, response) => refuse(response))
  app.get('/bare/next', (_request, _response, next) => next(new Error('discarded')))
  const routes = new Map<string, RequestHandler>()
  app.use((request, response, next) => {
    const route = routes.get(request.path)
    if (route === undefined) next()
    else route(request, response, next)
  })
  app.use(answerError)
  const { port, close } = await serve(app)
  return {
    port,
    close,
    last: () => last,
    mount({ handler, inner = pass, outer = [], ...how }) {
      mounted += 1
      const path = `/${mounted}`
      const capture: RequestHandler = (_request, response, next) => {
        last = hold(response, how, next)
        next()
      }
      routes.set(path, express.Router().use(...outer, capture, inner, handler))
      return path
    },
    bare: async () => ({
      refuse: await rawRequest(port, { path: '/bare/refuse' }),
      next: await rawRequest(port, { path: '/bare/next' }),
      head: await rawRequest(port, { method: 'HEAD', path: '/bare/refuse' }),
    }),
  }
}

interface Held {
  discard(): boolean
}

const pass: RequestHandler = (_request, _response, next) => next()

function hold(
  response: Response,
  { moment, answer, limit, told }: Omit<Discarding, 'handler'>,
  next: (error?: unknown) => void,
): Held {
  const sizes = { held: 1e6, ended: 1e6, opening: 0, never: 1e6 }
  const answerAgain = async (): Promise<void> => {
    const isDiscarded = held.discard()
    const { headersSent, writableEnded, statusCode } = response
    told?.push({ isDiscarded, headersSent, writableEnded, statusCode })
    if (answer === 'refuse') refuse(response)
    else if (answer === 'next') next(new Error('discarded'))
    else setTimeout(() => next(new Error('discarded')), 20)
  }
  const before = takeSnapshot(response)
  const control = bufferResponse(
    {
      response,
      isHead: response.req.method === 'HEAD',
      maxBytes: limit ?? sizes[moment],
      storedHeaders: new Set(['content-type']),
    },
    {
      onComplete: async () => {
        await new Promise(setImmediate)
        if (moment === 'ended' || moment === 'opening') await answerAgain()
      },
      onStream: async () => {
        await new Promise(setImmediate)
        if (moment === 'opening') await answerAgain()
      },
      onAbort() {},
      onSendError() {},
    },
  )
  const held = { discard: () => control.discard(before) }
  if (moment === 'held') setImmediate(answerAgain)
  return held
}
