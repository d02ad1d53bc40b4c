import type { RequestHandler } from 'express'
import { memoryStore } from 'express-service-auth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import type { Receiver } from '../../support/receiver/open-receiver.js'
import { type Answer, call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { WAYS } from './ways-to-send.js'

const STORED = [
  'content-type',
  'content-encoding',
  'content-language',
  'content-disposition',
  'content-location',
  'location',
  'etag',
  'last-modified',
  'link',
]

const seen = ({ status, reason, headers, body, trailers, isBroken }: Answer) => ({
  status,
  reason,
  headers,
  body: body.toString('latin1'),
  trailers,
  isBroken,
})

/** Node refuses trailers where there is no body. */
const methodsOf = (way: string): string[] =>
  way.startsWith('trailers') ? ['POST'] : ['POST', 'HEAD']

describe.each(EXPRESS_MAJORS)('A response behind the key, $major', ({ express }) => {
  const handler: RequestHandler = (request, response, next) =>
    WAYS[String(request.params['id'])]?.(request, response, next)
  let bare: Receiver
  let guarded: Receiver
  beforeAll(async () => {
    bare = await openOrders({ express, handler })
    guarded = await openOrders({ express, handler, store: memoryStore() })
  })
  afterAll(() => Promise.all([bare.close(), guarded.close()]))

  it.each(Object.keys(WAYS))('is the one without it, and is replayed: %s', async (way) => {
    for (const method of methodsOf(way)) {
      const request = { method, key: newKey(), path: `/orders/${encodeURIComponent(way)}` }
      const without = await call(bare.port, request)
      const first = await call(guarded.port, request)
      expect(seen(first), method).toEqual(seen(without))
      const runs = guarded.handled

      const second = await call(guarded.port, request)
      expect(guarded.handled).toBe(runs)
      expect(second.status).toBe(first.status)
      expect(second.body.equals(first.body)).toBe(true)
      expect(second.headers['idempotent-replayed']).toEqual(['true'])
      expect(second.headers['cache-control']).toEqual(['no-store'])
      expect(second.headers['set-cookie']).toBeUndefined()
      expect(second.headers['transfer-encoding']).toBeUndefined()
      for (const name of STORED) expect(second.headers[name], name).toEqual(first.headers[name])
      const isBodyless = method === 'HEAD' || [204, 304].includes(first.status)
      const length = isBodyless ? undefined : [String(first.body.length)]
      const ofHead = method === 'HEAD' ? first.headers['content-length'] : length
      expect(second.headers['content-length']).toEqual(ofHead)
    }
  })
})
