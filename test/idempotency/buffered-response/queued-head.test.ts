import { Readable } from 'node:stream'
import type { RequestHandler, Response } from 'express'
import { memoryStore } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { withoutDate } from '../../support/network/raw-exchange.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { type Call, callRaw, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'
import { startOrders } from '../../support/receiver/receiver.js'
import { until } from '../../support/until.js'
import { compress } from './outer-middlewares.js'

const store = memoryStore()
afterAll(() => store.close())

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const SLOW = '/orders/slow'
const LINE = 'a line of the body\n'

/** A request that asks to be let go on, and sends its body without waiting. */
const EXPECTING: Call = {
  body: '{"a":1}',
  headers: { expect: '100-continue', connection: 'close', 'accept-encoding': 'gzip' },
}

describe.each(EXPRESS_MAJORS)(
  'A head that is queued behind 100 Continue, $major',
  ({ express }) => {
    /** The first of two responses waits until the second is complete and queued behind it. */
    async function open(handler: RequestHandler, more: Partial<OrdersOptions> = {}) {
      let first: Response | undefined
      let second: Response | undefined
      const line: RequestHandler = (req, res, next) => {
        if (req.path === SLOW) first = res
        else {
          second = res
          next()
        }
      }
      const outer = [line, ...(more.outer ?? [])]
      const receiver = await startOrders({ express, handler, ...more, outer })

      /** All that comes for the second request, behind the answer to the first or on its own. */
      async function answerTo(given: Call, isQueued: boolean): Promise<string> {
        const calls = isQueued ? [{ method: 'GET', path: SLOW }, given] : [given]
        const raw = callRaw(receiver.port, ...calls)
        if (isQueued) {
          await until('both', async () => first !== undefined && second?.finished === true)
          first?.end('slow')
        }
        const received = withoutDate(withoutDate(await raw.closed))
        first = undefined
        second = undefined
        return isQueued ? received.slice(received.indexOf('slow') + 4) : received
      }
      return { answerTo }
    }

    /** The same bytes as without another response before it. */
    async function expectInOrder(
      { answerTo }: Awaited<ReturnType<typeof open>>,
      given: Call,
      alone = given,
    ): Promise<string> {
      const queued = await answerTo(given, true)
      expect(queued).toBe(await answerTo(alone, false))
      expect(queued.startsWith(CONTINUE)).toBe(true)
      return queued
    }

    const WAYS: Record<string, RequestHandler> = {
      json: (_req, res) => void res.status(201).json({ a: 'é' }),
      'end of a text': (_req, res) => void res.end(LINE),
      'end of bytes': (_req, res) => void res.end(Buffer.from(LINE)),
      'write and end': (_req, res) => {
        res.write(Buffer.from(LINE))
        res.end(LINE)
      },
      'writeHead and end': (_req, res) => void res.writeHead(202, { a: '1' }).end(LINE),
      'a pipe': (_req, res) => void Readable.from([Buffer.from(LINE), LINE]).pipe(res),
      'a status without a body': (_req, res) => void res.sendStatus(204),
      'an error': (_req, _res, next) => next(new Error('an error')),
      'a header beyond ASCII': (_req, res) =>
        void res.setHeader('Content-Location', 'caf\xe9').end(Buffer.from(LINE)),
      'early hints': (_req, res) => {
        res.writeProcessing()
        res.writeEarlyHints({ link: '</a.css>; rel=preload' })
        res.end(Buffer.from(LINE))
      },
    }

    it.each(Object.entries(WAYS))(
      'is sent in order, and so is its replay: %s',
      async (_way, handler) => {
        const guarded = await open(handler, { store })
        const key = newKey()
        await expectInOrder(guarded, { ...EXPECTING, key }, { ...EXPECTING, key: newKey() })
        const replay = await expectInOrder(guarded, { ...EXPECTING, key })
        expect(replay).toContain('Idempotent-Replayed: true')
      },
    )

    it('is sent in order to HEAD, and so is its replay', async () => {
      const guarded = await open((_req, res) => void res.json({ a: 1 }), { store })
      const head = { ...EXPECTING, method: 'HEAD', key: newKey() }
      await expectInOrder(guarded, head, { ...head, key: newKey() })
      await expectInOrder(guarded, head)
    })

    it('is sent in order where the body flows', async () => {
      const options = { maxResponseBytes: 10 }
      for (const handler of [WAYS['end of bytes'], WAYS['write and end'], WAYS['a pipe']]) {
        const guarded = await open(handler as RequestHandler, { store, options })
        // Chunks are cut otherwise from Node to Node.
        const received = await guarded.answerTo({ ...EXPECTING, key: newKey() }, true)
        expect(received.startsWith(`${CONTINUE}HTTP/1.1 200 OK\r\n`)).toBe(true)
        expect(received.split('HTTP/1.1')).toHaveLength(3)
      }
    })

    it('is sent in order through an outer middleware that compresses', async () => {
      const handler: RequestHandler = (_req, res) => void res.json({ a: 1 })
      const guarded = await open(handler, { store, outer: [compress] })
      const key = newKey()
      await expectInOrder(guarded, { ...EXPECTING, key }, { ...EXPECTING, key: newKey() })
      await expectInOrder(guarded, { ...EXPECTING, key })
      await expectInOrder(guarded, EXPECTING)
    })

    it.each(['POST', 'HEAD'])('is sent in order where it refuses %s', async (method) => {
      const guarded = await open((_req, res) => void res.json({}), { store })
      const withoutToken = { ...EXPECTING.headers, authorization: '' }
      const call = { ...EXPECTING, method }
      const refused = await expectInOrder(guarded, { ...call, headers: withoutToken })
      expect(refused).toContain('HTTP/1.1 401')
      expect(await expectInOrder(guarded, call)).toContain('HTTP/1.1 400')
      const refusedCaller = { ...call, claims: { sub: 'stranger' } }
      expect(await expectInOrder(guarded, refusedCaller)).toContain('HTTP/1.1 403')
    })
  },
)
