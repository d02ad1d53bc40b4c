import type { Request, RequestHandler, Response } from 'express'
import { ServiceAuthError } from 'express-service-auth'
import { expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { describeReceivers } from '../../support/receiver/each-receiver.js'
import { type Answer, call, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

type End = (chunk: Buffer | string | undefined, res: Response) => Buffer | string | undefined

/** An outer middleware that does this in its own `res.end`. */
const inEnd =
  (change: End): RequestHandler =>
  (_req, res, next) => {
    const { end } = res
    res.end = ((chunk?: Buffer | string, ...rest: []) =>
      Reflect.apply(end, res, [change(chunk, res), ...rest])) as typeof res.end
    next()
  }

const unlessSent =
  (change: End): End =>
  (chunk, res) =>
    res.headersSent ? chunk : change(chunk, res)

const CHANGES: Record<string, End> = {
  'sets a header': (chunk, res) => {
    res.setHeader('X-Outer', '1')
    return chunk
  },
  'removes a header': (chunk, res) => {
    res.removeHeader('Content-Type')
    res.removeHeader('X-Of-Handler')
    return chunk
  },
  'appends to a header': (chunk, res) => {
    res.appendHeader('Link', ['</outer>', '</outer/2>'])
    return chunk
  },
  'sets another status': (chunk, res) => {
    if (res.statusCode === 200) res.statusCode = 203
    return chunk
  },
  'changes the body': (chunk) => (chunk === undefined ? chunk : String(chunk).toUpperCase()),
  'makes the body longer': (chunk, res) => {
    res.removeHeader('Content-Length')
    return chunk ? `${chunk} and more` : chunk
  },
  'makes the body longer and says so': (chunk, res) => {
    if (!chunk) return chunk
    const longer = Buffer.from(`${chunk} and more`)
    res.setHeader('Content-Length', longer.byteLength)
    return longer
  },
}

/** Their head is written in `end`. */
const AT_THE_END: Record<string, (req: Request, res: Response) => unknown> = {
  json: (_req, res) => res.set('X-Of-Handler', '1').append('Link', '</a>').json({ a: 'é' }),
  'send of a text': (_req, res) => res.type('text').send('text'),
  'end of a text': (_req, res) => res.end('text'),
  'end of bytes': (_req, res) => res.end(Buffer.from('bytes')),
  'end of nothing': (_req, res) => res.end(),
  'a status without a body': (_req, res) => res.sendStatus(204),
  'a status message': (_req, res) => {
    res.statusMessage = 'Fine'
    res.end('text')
  },
  'an end long after': (_req, res) => setTimeout(() => res.json({ late: true }), 5),
}

/** A body that is given to HEAD is not kept. */
const WITHOUT_BODY_TO_HEAD = ['json', 'send of a text', 'end of nothing']

/** Their head is written before. */
const BEFORE_THE_END: typeof AT_THE_END = {
  'writeHead and end': (_req, res) => res.writeHead(201, { 'X-Of-Handler': '1' }).end('text'),
  'write and end': (_req, res) => {
    res.write('a ')
    res.end('text')
  },
  'flushHeaders and end': (_req, res) => {
    res.flushHeaders()
    res.end('text')
  },
}

/** What a replay has beside what was answered first, and what is not kept. */
function withoutMarks({ headers, ...answer }: Answer) {
  const { 'idempotent-replayed': _r, 'cache-control': _c, 'x-of-handler': _h, ...others } = headers
  return { ...answer, reason: '', headers: others, body: answer.body.toString() }
}

describeReceivers('An outer middleware that changes an answer in its own end', (bench) => {
  const cases = Object.entries(CHANGES).map(([change, end]): [string, RequestHandler] => [
    change,
    inEnd(unlessSent(end)),
  ])

  // `headersSent` is false where the head is written in `end`: the change is made there.
  it.each(cases)('%s: gives the answer that it gives without the key', async (_change, outer) => {
    const handlers = { ...AT_THE_END, ...BEFORE_THE_END }
    const handler: RequestHandler = (req, res) => void handlers[String(req.query['by'])]?.(req, res)
    const bare = await bench.startBare(handler, { outer: [outer] })
    const receiver = await bench.start(handler, {}, { outer: [outer] })
    const flowing = await bench.start(handler, { maxResponseBytes: 1 }, { outer: [outer] })
    for (const by of Object.keys(handlers)) {
      for (const method of WITHOUT_BODY_TO_HEAD.includes(by) ? ['POST', 'HEAD'] : ['POST']) {
        const given = { method, path: `/orders/1?by=${encodeURIComponent(by)}` }
        const key = newKey()
        const without = await call(bare.port, given)
        expect(await call(receiver.port, { ...given, key }), by).toEqual(without)
        expect(await call(flowing.port, { ...given, key: newKey() }), by).toEqual(without)
        if (by in BEFORE_THE_END) continue
        const replay = await call(receiver.port, { ...given, key })
        expect(replay.headers['idempotent-replayed'], by).toEqual(['true'])
        expect(withoutMarks(replay), by).toEqual(withoutMarks(without))
      }
    }
  })

  it('gives the app the cause where it comes too late, and tells of it', async () => {
    const events = hearIdempotency()
    const outer = [inEnd(CHANGES['sets a header'] as End)]
    for (const handler of Object.values(BEFORE_THE_END)) {
      const bare = await bench.startBare((req, res) => void handler(req, res), { outer })
      expect((await call(bare.port)).isBroken).toBe(true)
      const receiver = await bench.start((req, res) => void handler(req, res), {}, { outer })
      events.length = 0
      expect((await call(receiver.port, { key: newKey() })).isBroken).toBe(true)
      await until('the error', async () => receiver.errors.length > 0)
      const [error] = receiver.errors
      expect(error).toBeInstanceOf(ServiceAuthError)
      expect(error).toMatchObject({ code: 'internal', cause: { code: 'ERR_HTTP_HEADERS_SENT' } })
      expect(events.map(({ reason }) => reason)).toEqual([
        'reserved',
        'result_kept',
        'answer_unsent',
      ])
      expect(events[2]).toMatchObject({ outcome: 'accepted', fence: expect.any(Number) })
    }
  })

  it('lets the app answer where it fails before the head, first and at a retry', async () => {
    const events = hearIdempotency()
    let failures = 0
    const outer = inEnd((chunk, res) => {
      if (res.statusCode === 200 && failures++ < 2) throw new Error('outer')
      return chunk
    })
    const receiver = await bench.start((_req, res) => void res.json({}), {}, { outer: [outer] })
    const key = newKey()
    for (let time = 0; time < 2; time += 1) {
      const answer = await call(receiver.port, { key })
      expect([answer.status, answer.isBroken]).toEqual([500, false])
      expect(receiver.errors[time]).toMatchObject({ code: 'internal', cause: { message: 'outer' } })
    }
    const told = events.map(({ reason }) => reason)
    expect(told).toEqual(['reserved', 'result_kept', 'answer_unsent', 'answer_unsent'])
    expect((await call(receiver.port, { key })).status).toBe(200)
    expect(receiver.handled).toBe(1)
  })
})
