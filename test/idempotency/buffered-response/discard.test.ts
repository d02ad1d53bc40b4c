import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { RequestHandler, Response } from 'express'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openExchange, rawRequest, withoutDate } from '../../support/network/raw-exchange.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { until } from '../../support/until.js'
import { type DiscardBench, MOMENTS, openDiscards } from './discards.js'
import { atTheLastMoment, compress, measuring, signing } from './outer-middlewares.js'

const BODY = 'x'.repeat(300)
const THIS_FILE = fileURLToPath(import.meta.url)

/** Each leaves as much on the response as it can. */
const WAYS: Record<string, RequestHandler> = {
  json: (_req, res) => void res.status(201).cookie('a', 'b').json({ body: BODY }),
  'end with headers of another case': (_req, res) => {
    res.setHeader('x-frame-options', 'DENY')
    res.appendHeader('X-LIST', 'c')
    res.removeHeader('X-Powered-By')
    res.removeHeader('Date')
    res.statusMessage = 'Made'
    res.status(201).end(BODY)
  },
  'write and end': (_req, res) => {
    res.set('Content-Length', '300').write(BODY.slice(0, 100))
    res.end(BODY.slice(100))
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
  'writeHead of an array': (_req, res) =>
    void res.writeHead(201, ['ETag', '"1"', 'X-Frame-Options', 'DENY']).end(BODY),
  flushHeaders: (_req, res) => {
    res.type('text').flushHeaders()
    res.end(BODY)
  },
  redirect: (_req, res) => res.redirect('/elsewhere'),
  sendFile: (_req, res) => res.sendFile(THIS_FILE),
  pipe: (_req, res) => void Readable.from([BODY, BODY]).pipe(res.type('text')),
  '204': (_req, res) => void res.sendStatus(204),
  'a strict length': (_req, res) => {
    res.strictContentLength = true
    res.set('Content-Length', '300').end(BODY)
  },
}

describe.each(EXPRESS_MAJORS)('A discarded response, $major', ({ express }) => {
  let bench: DiscardBench
  beforeAll(async () => {
    bench = await openDiscards(express)
  })
  afterAll(() => bench.close())

  it.each(Object.keys(WAYS))('leaves nothing on the one that follows: %s', async (way) => {
    const expected = await bench.bare()
    for (const moment of MOMENTS) {
      for (const answer of ['refuse', 'next'] as const) {
        // Express passes an error on a little later, and this one is still at work until then.
        if (way === 'sendFile' && moment === 'held' && answer === 'next') continue
        const path = bench.mount({ moment, answer, handler: WAYS[way] as RequestHandler })
        const label = `${moment} ${answer}`
        expect(await rawRequest(bench.port, { path }), label).toBe(expected[answer])
      }
      const path = bench.mount({ moment, answer: 'refuse', handler: WAYS[way] as RequestHandler })
      const head = await rawRequest(bench.port, { method: 'HEAD', path })
      expect(head, moment).toBe(expected.head)
    }
  })

  it.each([
    ['compression', compress],
    ['a hook of the head', atTheLastMoment('X-Inner', '1')],
    ['one that writes by way of the response', signing],
    ['one that measures', measuring],
  ])('passes by what stands between it and its handler: %s', async (_name, inner) => {
    const expected = await bench.bare()
    for (const moment of MOMENTS) {
      for (const answer of ['refuse', 'next', 'later'] as const) {
        const handler: RequestHandler = (_req, res) => {
          res.write(BODY)
          res.end(BODY)
        }
        const path = bench.mount({ moment, answer, handler, inner })
        const wanted = answer === 'refuse' ? expected.refuse : expected.next
        expect(
          await rawRequest(bench.port, { path, headers: ['Accept-Encoding: gzip'] }),
          `${moment} ${answer}`,
        ).toBe(wanted)
      }
    }
  })

  it('goes by what stands outside, as each answer does', async () => {
    const handler: RequestHandler = (_req, res) => void res.json({ body: BODY })
    const outer = [atTheLastMoment('X-Outer', '1'), signing]
    const path = bench.mount({ moment: 'ended', answer: 'next', handler, outer })
    const received = await rawRequest(bench.port, { path })
    expect(received).toContain('X-Outer: 1\r\n')
    expect(received).toContain(' -- signed\r\n0\r\n\r\n')
    expect(received).not.toContain('xxx')
  })

  it('swallows what its handler still does, and leaves its connection usable', async () => {
    const expected = await bench.bare()
    const seen: unknown[] = []
    let late: Response | undefined
    const handler: RequestHandler = (_req, res) => {
      late = res
      res.on('error', (error) => seen.push(error))
      res.write(BODY, () => {})
    }
    const path = bench.mount({ moment: 'held', answer: 'refuse', handler })
    const exchange = openExchange(bench.port)
    exchange.send({ path })
    await until('the answer', async () => exchange.received().endsWith('}'))
    const errors: unknown[] = []
    const callback = (error?: Error | null): void =>
      void errors.push((error as NodeJS.ErrnoException)?.code)
    const response = late as Response
    expect(response.write('late', callback)).toBe(false)
    expect(() => response.set('X-Late', '1').status(200).json({ late: true })).not.toThrow()
    response.removeHeader('X-Late')
    response.writeHead(200).flushHeaders()
    response.end('late', callback)
    Readable.from(['late']).pipe(response)
    await delay(20)
    exchange.send({ path })
    await until('both', async () => exchange.received().split('}').length === 3)
    const one = withoutKeepAlive(expected.refuse)
    const both = withoutKeepAlive(withoutDate(withoutDate(exchange.received())))
    expect(both).toBe(one + one)
    expect(seen).toEqual([])
    expect(errors).toEqual(['ERR_STREAM_WRITE_AFTER_END', 'ERR_STREAM_WRITE_AFTER_END'])
    exchange.socket.destroy()
  })

  it('is thrown away with its pipe and its callbacks', async () => {
    const expected = await bench.bare()
    const codes: (string | undefined)[] = []
    const note = (error?: Error | null) => codes.push((error as NodeJS.ErrnoException)?.code)
    const source = new Readable({ read() {} })
    const piped: RequestHandler = (_req, res) => {
      source.pipe(res)
      source.push('some')
      setTimeout(() => {
        source.push('more')
        source.push(null)
      }, 10)
    }
    const first = bench.mount({ moment: 'held', answer: 'later', handler: piped })
    expect(await rawRequest(bench.port, { path: first })).toBe(expected.next)

    const ended: RequestHandler = (_req, res) => void res.end(BODY, note as () => void)
    for (const moment of ['ended', 'opening'] as const) {
      await rawRequest(bench.port, {
        path: bench.mount({ moment, answer: 'refuse', handler: ended }),
      })
    }
    expect(codes).toEqual(['ERR_STREAM_DESTROYED', 'ERR_STREAM_DESTROYED'])
  })

  it('keeps its place among pipelined requests', async () => {
    const handler: RequestHandler = (_req, res) => void res.json({ body: BODY })
    const path = bench.mount({ moment: 'ended', answer: 'later', handler })
    const kept = bench.mount({ moment: 'never', answer: 'refuse', handler })
    const exchange = openExchange(bench.port)
    for (const each of [path, kept, path]) exchange.send({ path: each })
    await until('all', async () => exchange.received().split('HTTP/1.1 ').length === 4)
    const statuses = [...exchange.received().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code)
    expect(statuses).toEqual(['500', '200', '500'])
    exchange.socket.destroy()
  })

  it('has been nothing on the wire but what informs', async () => {
    const handler: RequestHandler = (_req, res) => {
      res.writeEarlyHints({ link: '</a>; rel=preload' })
      res.json({ body: BODY })
    }
    const path = bench.mount({ moment: 'ended', answer: 'later', handler })
    const received = await rawRequest(bench.port, { path })
    expect(received).toMatch(/^HTTP\/1\.1 103 Early Hints\r\nLink: [^\r]*\r\n\r\nHTTP\/1\.1 500 /)
  })

  it('is again as it was found, and says so', async () => {
    for (const moment of MOMENTS) {
      const told: unknown[] = []
      const handler: RequestHandler = (_req, res) =>
        void res.status(201).set('ETag', '"1"').end(BODY)
      const path = bench.mount({ moment, answer: 'refuse', handler, told })
      await rawRequest(bench.port, { path })
      expect(told, moment).toEqual([
        { isDiscarded: true, headersSent: false, writableEnded: false, statusCode: 200 },
      ])
    }
  })

  it('is none once its first byte has been passed on, or where it is gone', async () => {
    const handler: RequestHandler = (_req, res) => void res.json({ body: BODY })
    const flowing: RequestHandler = (_req, res) => void res.write(BODY)
    const gone: RequestHandler = (_req, res) => void res.destroy()
    for (const [limit, each] of [
      [1000, handler],
      [10, handler],
      [10, flowing],
      [1000, gone],
    ] as const) {
      const path = bench.mount({ moment: 'never', answer: 'refuse', handler: each, limit })
      const exchange = openExchange(bench.port)
      exchange.send({ path })
      await delay(30)
      const before = exchange.received()
      expect(bench.last()?.discard()).toBe(false)
      expect(exchange.received()).toBe(before)
      exchange.socket.destroy()
    }
  })
})

const withoutKeepAlive = (bytes: string): string =>
  bytes.replace(/Connection: [^\r]*\r\n(Keep-Alive: [^\r]*\r\n)?/gi, '')
