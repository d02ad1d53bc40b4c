import type { ServerResponse } from 'node:http'
import { isContent, writtenBy } from './chunk.js'
import type { Capture } from './delivery.js'
import { announceLength, tooLate } from './functions.js'
import type { SendingFunctions } from './interception.js'
import { call } from './sending.js'
import { isHeadSent } from './waiting-head.js'

/*
 * What the app calls once it has discarded a held response: the functions that the response had
 * before, until the app has answered. What the handler still does then goes nowhere: it does not
 * know that its answer has been thrown away, and what Node throws or emits at that could end the
 * process.
 */

type Interceptor = (capture: Capture, args: unknown[]) => unknown

const untilAnswered =
  (name: keyof SendingFunctions) =>
  (capture: Capture, args: unknown[]): unknown =>
    capture.response.finished ? capture.response : call(capture, name, args)

export const setHeader: Interceptor = untilAnswered('setHeader')
export const setHeaders: Interceptor = untilAnswered('setHeaders')
export const appendHeader: Interceptor = untilAnswered('appendHeader')
export const removeHeader: Interceptor = untilAnswered('removeHeader')
export const writeHead: Interceptor = untilAnswered('writeHead')
export const flushHeaders: Interceptor = untilAnswered('flushHeaders')

export const destroy = (capture: Capture, args: unknown[]): unknown =>
  call(capture, 'destroy', args)

export function write(capture: Capture, args: unknown[]): unknown {
  if (capture.response.finished) return tooLate(writtenBy(args).callback)
  return call(capture, 'write', args)
}

export function end(capture: Capture, args: unknown[]): ServerResponse {
  const { response, postponed } = capture
  const { chunk, encoding, callback } = writtenBy(args)
  if (response.finished) {
    tooLate(callback)
    return response
  }
  // Node announces no length where a header that announced one has been taken off.
  if (!isHeadSent(response) && (!chunk || isContent(chunk))) {
    const length = isContent(chunk) ? Buffer.byteLength(chunk, encoding) : 0
    announceLength(capture, length)
  }
  call(capture, 'end', args)
  // Its handler meant to break the connection off behind its answer. Before that of the app it
  // would leave the caller without one.
  for (const breakOff of postponed.splice(0)) breakOff()
  return response
}
