import { gunzipSync } from 'node:zlib'
import compression from 'compression'
import cookieSession from 'cookie-session'
import etag from 'etag'
import type { RequestHandler, Response } from 'express'
import { memoryStore } from 'express-service-auth'
import session from 'express-session'
import helmet from 'helmet'
import morgan from 'morgan'
import onHeaders from 'on-headers'
import { pinoHttp } from 'pino-http'
import responseTime from 'response-time'
import { afterAll, describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { type Answer, call, newKey } from '../../support/receiver/order-calls.js'
import { startOrders } from '../../support/receiver/receiver.js'
import { until } from '../../support/until.js'

const store = memoryStore()
afterAll(() => store.close())

/** An `ETag` of whatever an answer is ended with. */
const etagInEnd: RequestHandler = (_req, res, next) => {
  const { end } = res
  res.end = ((chunk?: Buffer | string, ...rest: []) => {
    if (!res.headersSent && chunk) res.setHeader('ETag', etag(Buffer.from(chunk)))
    return Reflect.apply(end, res, [chunk, ...rest])
  }) as typeof res.end
  next()
}

const late: RequestHandler = (_req, res, next) => {
  onHeaders(res, () => res.setHeader('X-Late', '1'))
  next()
}

const changing =
  (change: (session: Record<string, unknown>) => void): RequestHandler =>
  (req, _res, next) => {
    change((req as unknown as { session: Record<string, unknown> }).session)
    next()
  }

const visit = changing((visited) => {
  visited['visits'] = 1
})

/** What each writes into its log, where it has one. */
const REAL: Record<string, (log: { write(line: string): void }) => RequestHandler[]> = {
  compression: () => [compression({ threshold: 0 })],
  'cookie-session': () => [cookieSession({ name: 's', keys: ['k'] }), visit],
  etag: () => [etagInEnd],
  'express-session': () => [session({ secret: 's', resave: true, saveUninitialized: true }), visit],
  helmet: () => [helmet()],
  morgan: (log) => [morgan(':method :status :res[content-type]', { stream: log })],
  'on-headers': () => [late],
  'pino-http': (log) => [pinoHttp({}, log)],
  'response-time': () => [responseTime()],
}

const TEXT = 'a text that may be compressed '.repeat(10)

const HANDLERS: Record<string, (res: Response) => unknown> = {
  json: (res) => res.status(201).json({ text: TEXT }),
  'end of a text': (res) => res.type('text').end(TEXT),
  'end of nothing': (res) => res.end(),
  'write and end': (res) => {
    res.type('text').write(TEXT)
    res.end(TEXT)
  },
  'writeHead and end': (res) => res.writeHead(202, { 'Content-Type': 'text/plain' }).end(TEXT),
}

const OF_ONE_ANSWER = ['set-cookie', 'x-response-time']

/** Nothing that differs from answer to answer: of those, that they are there. */
function comparable({ headers, body, ...answer }: Answer) {
  const kept = Object.entries(headers).map(([name, values]) => [
    name,
    OF_ONE_ANSWER.includes(name) ? values.length : values,
  ])
  const isCompressed = headers['content-encoding']?.[0] === 'gzip'
  const text = (isCompressed ? gunzipSync(body) : body).toString()
  return { ...answer, headers: Object.fromEntries(kept), body: text }
}

describe.each(EXPRESS_MAJORS)('A real middleware, $major', ({ express }) => {
  async function open(place: 'outer' | 'inner', name: string, isGuarded: boolean) {
    const lines: string[] = []
    const middlewares = REAL[name]?.({ write: (line) => void lines.push(line) }) ?? []
    const receiver = await startOrders({
      express,
      handler: (req, res) => void HANDLERS[String(req.query['by'])]?.(res),
      [place]: middlewares,
      ...(isGuarded && { store }),
    })
    return { lines, receiver }
  }

  const cases = Object.keys(REAL).flatMap((name) =>
    (['outer', 'inner'] as const).map((place) => [name, place] as const),
  )
  it.each(cases)('%s gives the same answer as without the key, %s', async (name, place) => {
    const bare = await open(place, name, false)
    const guarded = await open(place, name, true)
    for (const by of Object.keys(HANDLERS)) {
      const path = `/orders/1?by=${encodeURIComponent(by)}`
      const given = { path, headers: { 'accept-encoding': 'gzip' } }
      const keyed = { ...given, key: newKey() }
      const without = comparable(await call(bare.receiver.port, given))
      expect(comparable(await call(guarded.receiver.port, keyed)), by).toEqual(without)
      const replay = comparable(await call(guarded.receiver.port, keyed))
      expect(replay.headers['idempotent-replayed'], by).toEqual(['true'])
      expect([replay.status, replay.body], by).toEqual([without.status, without.body])
      if (place === 'outer')
        expect(replay.headers, by).toMatchObject(withoutFraming(without.headers))
      expect(guarded.receiver.errors).toEqual([])
    }
    // Each answer has its line, replays of an outer one, too.
    const handlers = Object.keys(HANDLERS).length
    const perAnswer = bare.lines.length / handlers
    const answers = place === 'outer' ? 2 * handlers : handlers
    await until('the log', async () => guarded.lines.length === perAnswer * answers)
    if (name === 'morgan' && place === 'inner') expect(guarded.lines).toEqual(bare.lines)
  })
})

/** A replay is sent in one piece, and must not be stored by others. */
function withoutFraming(headers: Record<string, unknown>): Record<string, unknown> {
  const { 'transfer-encoding': _t, 'content-length': _l, 'cache-control': _c, ...others } = headers
  return others
}
