import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import { memoryStore, requireIdempotencyKey, ServiceAuthError } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { issuer, startRoute } from './body-readers.js'

const store = memoryStore()
afterAll(async () => {
  store.close()
  await issuer.close()
})

const BODY = '{"item":"lamp"}'

/** As a check that takes a while, a store's say. */
function holdUntilGone() {
  const told = new EventEmitter()
  const hold: RequestHandler = (request, _response, next) => {
    request.on('error', () => undefined)
    request.once('close', () => {
      next()
      told.emit('passed')
    })
    told.emit('arrived')
  }
  return { hold, arrived: once(told, 'arrived'), passed: once(told, 'passed') }
}

describe.each(EXPRESS_MAJORS)('a caller who hangs up before the body is read, $major', (major) => {
  it.each<[string, (socket: Socket) => void]>([
    ['closes', (socket) => socket.destroy()],
    ['resets', (socket) => socket.resetAndDestroy()],
    ['half closes', (socket) => socket.end()],
  ])('is no wrong wiring when it %s', async (_way, hangUp) => {
    const { express } = major
    const { hold, arrived, passed } = holdUntilGone()
    const readers = [hold, express.json(), requireIdempotencyKey({ store })]
    const { receiver } = await startRoute(express, readers, (_req, res) => res.json({}))
    const head = [
      'POST / HTTP/1.1',
      'Host: orders',
      `Authorization: Bearer ${issuer.token()}`,
      'Idempotency-Key: "k"',
      'Content-Type: application/json',
      `Content-Length: ${BODY.length}`,
    ]
    const socket = connect(receiver.port, '127.0.0.1').on('error', () => undefined)
    socket.write(`${head.join('\r\n')}\r\n\r\n${BODY}`)
    await arrived
    hangUp(socket)
    await passed
    await turn()
    // The parser of Express 4 complains by itself.
    expect(receiver.errors.filter((error) => error instanceof ServiceAuthError)).toEqual([])
    expect(receiver.handled).toBe(0)
  })
})
