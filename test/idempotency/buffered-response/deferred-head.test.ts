import type { RequestHandler, Response } from 'express'
import { memoryStore } from 'express-service-auth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import type { Receiver } from '../../support/receiver/open-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'

const INVALID = String.fromCharCode(10)

/** What a handler does to a head, and what it sees of it. */
const ACTS: Record<string, (res: Response, note: (value: unknown) => void) => void> = {
  'sets a header behind it': (res) => res.writeHead(200).setHeader('a', '1'),
  'sets headers behind it': (res) => res.writeHead(200).setHeaders(new Map([['a', '1']])),
  'appends to a header behind it': (res) => res.writeHead(200).appendHeader('a', '1'),
  'takes a header off behind it': (res) => res.writeHead(200).removeHeader('a'),
  'writes it twice': (res) => res.writeHead(200).writeHead(201),
  'writes it twice with headers': (res) => res.writeHead(200).writeHead(200, { a: '1' }),
  'writes it with a status of none': (res) => res.writeHead(99),
  'writes it with a status of text': (res) => res.writeHead('x' as unknown as number),
  'writes it with an invalid value': (res) =>
    res.setHeader('c', '1').writeHead(200, { b: '1', a: INVALID }),
  'writes it with an invalid name': (res) => res.writeHead(200, { 'a b': '1' }),
  'writes it with an invalid message': (res) => res.writeHead(200, INVALID),
  'had an invalid message': (res) => {
    res.statusMessage = INVALID
    res.writeHead(200)
  },
  'looks at it': (res, note) => {
    note(res.headersSent)
    const headers = { 'X-B': '1' }
    res.writeHead(202, 'Taken', headers)
    headers['X-B'] = '2'
    note([res.headersSent, res.statusCode, res.statusMessage])
    res.statusCode = 500
    res.statusMessage = 'changed'
  },
  'looks at the message of its status': (res, note) => {
    res.writeHead(404)
    note([res.statusCode, res.statusMessage])
  },
}

describe.each(EXPRESS_MAJORS)(
  'A head that waits is to its handler as if sent, $major',
  ({ express }) => {
    const noted: unknown[] = []
    const handler: RequestHandler = (req, res) => {
      const seen: unknown[] = []
      try {
        ACTS[String(req.params['id'])]?.(res, (value) => seen.push(value))
      } catch (error) {
        const { name, code } = error as NodeJS.ErrnoException
        seen.push({ name, code })
      }
      seen.push([res.headersSent, res.statusCode, res.statusMessage])
      noted.push(seen)
      if (!res.headersSent) res.statusMessage = 'OK'
      if (!res.writableEnded) res.end('the end')
    }
    let bare: Receiver
    let guarded: Receiver
    beforeAll(async () => {
      bare = await openOrders({ express, handler })
      guarded = await openOrders({ express, handler, store: memoryStore() })
    })
    afterAll(() => Promise.all([bare.close(), guarded.close()]))

    it.each(Object.keys(ACTS))('who %s', async (act) => {
      noted.length = 0
      const path = `/orders/${encodeURIComponent(act)}`
      const without = await call(bare.port, { path, key: newKey() })
      const answer = await call(guarded.port, { path, key: newKey() })
      expect(noted[1]).toEqual(noted[0])
      expect(answer).toEqual(without)
    })
  },
)
