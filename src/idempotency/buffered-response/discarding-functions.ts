import type { ServerResponse } from 'node:http'
import { isHeadSent } from './deferred-head.js'
import { isBodyless } from './head.js'
import { type Callback, call, type SendingFunctions } from './original-functions.js'
import { isContent, tooLate, writeDiscarded, writtenBy } from './replacement-functions.js'
import type { Capture } from './send-buffered.js'

/*
 * The functions that the app calls once it has discarded a buffered response: those that the response had
 * before, until the app has answered. What the handler still writes is ignored: it does not
 * know that its answer has been thrown away, and what Node throws or emits at that could end the
 * process. A handler that had not ended its answer may still write its body.
 */

type Interceptor = (capture: Capture, args: unknown[]) => unknown

/** Of the head: a handler has written its own, and so it is the app that makes another. */
const untilAnswered =
  (name: keyof SendingFunctions) =>
  (capture: Capture, args: unknown[]): unknown => {
    if (capture.response.finished) return capture.response
    capture.isHandlerWriting = false
    return call(capture, name, args)
  }

/** Whether the handler goes on with what has been thrown away: the head is as it was left. */
function isHandlers({ isHandlerWriting, entered, response }: Capture): boolean {
  const { statusCode, statusMessage } = entered.fields
  return (
    isHandlerWriting &&
    response.statusCode === statusCode &&
    response.statusMessage === statusMessage
  )
}

function goNowhere(callback: Callback | undefined): false {
  if (callback !== undefined) process.nextTick(callback, writeDiscarded())
  return false
}

export const setHeader: Interceptor = untilAnswered('setHeader')
export const setHeaders: Interceptor = untilAnswered('setHeaders')
export const appendHeader: Interceptor = untilAnswered('appendHeader')
export const removeHeader: Interceptor = untilAnswered('removeHeader')
export const writeHead: Interceptor = untilAnswered('writeHead')

export function flushHeaders(capture: Capture, args: unknown[]): unknown {
  if (capture.response.finished || isHandlers(capture)) return undefined
  return call(capture, 'flushHeaders', args)
}

export const destroy = (capture: Capture, args: unknown[]): unknown =>
  call(capture, 'destroy', args)

export function write(capture: Capture, args: unknown[]): unknown {
  if (capture.response.finished) return tooLate(writtenBy(args).callback)
  if (isHandlers(capture)) return goNowhere(writtenBy(args).callback)
  return call(capture, 'write', args)
}

const FRAMING = ['content-length', 'transfer-encoding', 'trailer']

function announceLength({ response, isHead }: Capture, length: number): void {
  if (isHead || isBodyless(response.statusCode)) return
  if (FRAMING.some((name) => response.hasHeader(name))) return
  response.setHeader('Content-Length', length)
}

export function end(capture: Capture, args: unknown[]): ServerResponse {
  const { response, postponed } = capture
  const { chunk, encoding, callback } = writtenBy(args)
  if (response.finished) {
    tooLate(callback)
    return response
  }
  if (isHandlers(capture)) {
    capture.isHandlerWriting = false
    goNowhere(callback)
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
