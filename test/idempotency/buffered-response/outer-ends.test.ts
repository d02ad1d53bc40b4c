import type { Request, RequestHandler, Response } from 'express'
import { ServiceAuthError } from 'express-service-auth'
import { expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { describeReceivers } from '../../support/receiver/each-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
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

/** Their head is written before. */
const BEFORE_THE_END: Record<string, (req: Request, res: Response) => unknown> = {
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

describeReceivers('An outer middleware that fails in its own end', (bench) => {
  it('gives the app the cause where it comes too late, and tells of it', async () => {
    const events = hearIdempotency()
    const outer = [
      inEnd((chunk, res) => {
        res.setHeader('X-Outer', '1')
        return chunk
      }),
    ]
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
