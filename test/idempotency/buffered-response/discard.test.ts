import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ErrorRequestHandler, RequestHandler, Response } from 'express'
import type { CoupledStore } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { call, callRaw, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'
import { startOrders } from '../../support/receiver/receiver.js'
import { until } from '../../support/until.js'
import { atTheLastMoment, signing } from './outer-middlewares.js'

const BODY = 'x'.repeat(300)
const THIS_FILE = fileURLToPath(import.meta.url)

/** When the run is lost: while its handler is at work, when it has ended, or when its body has outgrown the limit. */
const MOMENTS = ['working', 'ended', 'streaming'] as const
/** Who answers: the refusal of a run that is undone, or an error middleware at once or later. */
const ANSWERS = ['refusal', 'error', 'late error'] as const

interface Loss {
  readonly moment: (typeof MOMENTS)[number]
  readonly answer: (typeof ANSWERS)[number]
}

/** A coupled store that loses each run. */
const losing = ({ moment, answer }: Loss): CoupledStore => ({
  consume: async () => true,
  async run(_request, work) {
    const { signal } = new AbortController()
    const ending = work({ fence: 1, signal, answered() {} })
    if (moment !== 'working') await ending
    await new Promise(setImmediate)
    return answer === 'refusal'
      ? { outcome: 'undone', reason: 'timed_out' }
      : { outcome: 'commit_refused', cause: new Error('refused') }
  },
})

/** What helmet does, and who sets a list. */
const setOutside: RequestHandler = (_req, res, next) => {
  res.setHeader('X-Frame-Options', 'SAMEORIGIN')
  res.setHeader('X-List', ['a', 'b'])
  next()
}

const answerError: ErrorRequestHandler = (_error, _req, res, _next) =>
  void res.status(500).json({ failed: true })
const answerLate: ErrorRequestHandler = async (_error, _req, res, _next) => {
  await delay(20)
  res.status(500).json({ failed: true })
}

/** Each leaves as much on the response as it can. */
const WAYS: Record<string, RequestHandler> = {
  json: (_req, res) => void res.status(201).cookie('a', 'b').json({ body: BODY }),
  'end with headers of another case': (_req, res) => {
    res.setHeader('x-frame-options', 'DENY')
    res.appendHeader('X-LIST', 'c')
    res.removeHeader('Date')
    res.statusMessage = 'Made'
    res.status(201).end(BODY)
  },
  'an explicit framing': (_req, res) => {
    res.setHeader('Transfer-Encoding', 'chunked')
    res.setHeader('Trailer', 'X-Sum')
    res.write(BODY)
    res.addTrailers({ 'X-Sum': '300' })
    res.end()
  },
  'writeHead of an object': (_req, res) =>
    void res.writeHead(201, 'Made', { ETag: '"1"', 'Set-Cookie': ['a=b', 'c=d'] }).end(BODY),
  'a pipe': (_req, res) => void Readable.from([BODY, BODY]).pipe(res),
  sendFile: (_req, res) => void res.sendFile(THIS_FILE),
}

const twoParts: RequestHandler = (_req, res) => {
  res.write(BODY)
  res.end(BODY)
}

describe.each(EXPRESS_MAJORS)('An answer of a run that is lost, $major', ({ express }) => {
  async function open(handler: RequestHandler, loss: Loss, more: Partial<OrdersOptions> = {}) {
    const maxResponseBytes = loss.moment === 'streaming' ? 0 : 1e6
    const receiver = await startOrders({
      express,
      handler,
      store: losing(loss),
      options: { maxResponseBytes },
      finish: (app) => void app.use(loss.answer === 'late error' ? answerLate : answerError),
      ...more,
      outer: [setOutside, ...(more.outer ?? [])],
    })
    return receiver
  }

  /** What is answered where no handler has done anything. */
  async function expectedOf({ answer }: Loss, method: string) {
    const loss = { moment: 'working', answer: answer === 'refusal' ? 'refusal' : 'error' } as const
    const { port } = await open(() => {}, loss)
    return call(port, { method, key: newKey() })
  }

  const losses = MOMENTS.flatMap((moment) => ANSWERS.map((answer): Loss => ({ moment, answer })))

  it.each(losses)('leaves nothing on what follows: $moment, $answer', async (loss) => {
    for (const method of ['POST', 'HEAD']) {
      const expected = await expectedOf(loss, method)
      expect(expected.status).toBe(loss.answer === 'refusal' ? 503 : 500)
      for (const [way, handler] of Object.entries(WAYS)) {
        // A handler that has not begun its answer may answer before a late error middleware does.
        const isEarly = loss.moment === 'working' && loss.answer === 'late error'
        if (isEarly && way === 'sendFile') continue
        const receiver = await open(handler, loss)
        expect(await call(receiver.port, { method, key: newKey() }), way).toEqual(expected)
      }
    }
  })

  it.each([
    ['while the app is at its answer', 2],
    ['after that', 10],
  ])('is what the app says of it although its handler writes on, and ends %s', async (_, parts) => {
    const handler: RequestHandler = async (_req, res) => {
      for (let part = 0; part < parts; part++) {
        res.write(BODY)
        await delay(5)
      }
      res.end('the end')
    }
    const receiver = await open(handler, { moment: 'streaming', answer: 'late error' })
    const answer = await call(receiver.port, { key: newKey() })
    expect(answer).toMatchObject({ status: 500, isBroken: false })
    expect(answer.body.toString()).toBe('{"failed":true}')
  })

  it('goes by what stands outside, as each answer does', async () => {
    const outer = [atTheLastMoment('X-Outer', '1'), signing]
    const receiver = await open(twoParts, { moment: 'ended', answer: 'error' }, { outer })
    const { status, headers, body } = await call(receiver.port, { key: newKey() })
    expect([status, headers['x-outer']]).toEqual([500, ['1']])
    expect(body.toString()).toBe('{"failed":true} -- signed')
  })

  it('swallows what its handler still does, and leaves its connection usable', async () => {
    const seen: unknown[] = []
    const codes: unknown[] = []
    let late: Response | undefined
    const callback = (error?: Error | null): void =>
      void codes.push((error as NodeJS.ErrnoException)?.code)
    const handler: RequestHandler = (_req, res) => {
      late = res
      res.on('error', (error) => seen.push(error))
      res.write(BODY)
    }
    const receiver = await open(handler, { moment: 'working', answer: 'refusal' })
    const raw = callRaw(receiver.port, { key: newKey() })
    await until('the answer', async () => raw.received().endsWith('}'))
    const response = late as Response
    expect(response.write('late', callback)).toBe(false)
    response.set('X-Late', '1').status(200).json({ late: true })
    response.removeHeader('X-Late')
    response.writeHead(200).flushHeaders()
    response.end('late', callback)
    Readable.from(['late']).pipe(response)
    await delay(20)
    await raw.send({ key: newKey() })
    await until('both', async () => raw.received().split('HTTP/1.1 503').length === 3)
    expect(raw.received()).not.toMatch(/late/i)
    expect(seen).toEqual([])
    expect(codes).toEqual(['ERR_STREAM_WRITE_AFTER_END', 'ERR_STREAM_WRITE_AFTER_END'])
    raw.socket.destroy()
  })

  it('is thrown away with its callback, and is again as it was found', async () => {
    const codes: unknown[] = []
    const found: unknown[] = []
    const noteCode = (error?: NodeJS.ErrnoException) => void codes.push(error?.code)
    const handler: RequestHandler = (_req, res) => void res.status(201).end(BODY, noteCode)
    const noteFound: ErrorRequestHandler = (_error, _req, res, _next) => {
      found.push([res.headersSent, res.writableEnded, res.statusCode])
      res.end()
    }
    for (const moment of ['ended', 'streaming'] as const) {
      const finish = (app: Parameters<NonNullable<OrdersOptions['finish']>>[0]) =>
        void app.use(noteFound)
      const receiver = await open(handler, { moment, answer: 'error' }, { finish })
      const answer = await call(receiver.port, { key: newKey() })
      expect(answer).toMatchObject({ status: 200, isBroken: false, body: Buffer.alloc(0) })
    }
    expect(found).toEqual([
      [false, false, 200],
      [false, false, 200],
    ])
    expect(codes).toEqual(['ERR_STREAM_WRITE_AFTER_END', 'ERR_STREAM_WRITE_AFTER_END'])
  })

  it('has been nothing on the wire but what informs, and keeps its place in a pipeline', async () => {
    const handler: RequestHandler = (_req, res) => {
      res.writeEarlyHints({ link: '</a>; rel=preload' })
      res.json({ body: BODY })
    }
    const receiver = await open(handler, { moment: 'ended', answer: 'late error' })
    const raw = callRaw(receiver.port, { key: newKey() }, { key: newKey() })
    await until('both', async () => raw.received().split('}').length === 3)
    const statuses = [...raw.received().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code)
    expect(statuses).toEqual(['103', '500', '103', '500'])
    raw.socket.destroy()
  })
})
