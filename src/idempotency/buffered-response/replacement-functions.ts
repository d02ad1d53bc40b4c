import type { ServerResponse } from 'node:http'
import { types } from 'node:util'
import { isLostBehind } from './client-connection.js'
import { isHeadSent, postponeHead, refuseAfterHead } from './deferred-head.js'
import { assertLength, type Head, headOf, isBodyless, isEventStream } from './head.js'
import { type Callback, call, send, sendAfter } from './original-functions.js'
import { isHeld, isOpen } from './phase.js'
import {
  type Capture,
  complete,
  deliverEnd,
  finish,
  happen,
  keep,
  postpone,
} from './send-buffered.js'

/*
 * The functions that the handler of a buffered response calls instead of Node's.
 */

type Interceptor = (capture: Capture, args: unknown[]) => unknown

/** Nothing changes a head that waits, nor what the app sends in place of a discarded answer. */
const unlessWaiting =
  (name: 'setHeader' | 'setHeaders' | 'appendHeader' | 'removeHeader') =>
  (capture: Capture, args: unknown[]): unknown => {
    if (capture.phase === 'discarded') return capture.response
    if (capture.waitingHead !== undefined) return refuseAfterHead(name, args)
    return call(capture, name, args)
  }

export const setHeader: Interceptor = unlessWaiting('setHeader')
export const setHeaders: Interceptor = unlessWaiting('setHeaders')
export const appendHeader: Interceptor = unlessWaiting('appendHeader')
const removeUnlessWaiting = unlessWaiting('removeHeader')

export function removeHeader(capture: Capture, args: unknown[]): unknown {
  const returned = removeUnlessWaiting(capture, args)
  if (/^transfer-encoding$/i.test(String(args[0]))) capture.isChunkingRemoved = true
  return returned
}

export function writeHead(capture: Capture, args: unknown[]): unknown {
  const { response } = capture
  if (capture.phase === 'discarded') return response
  if (capture.waitingHead !== undefined) {
    return isRepeated(response, args) ? response : refuseAfterHead('writeHead', args)
  }
  if (capture.head !== undefined || isHeadSent(response)) {
    const isOfStatus = args.length === 1 && !isHeadSent(response)
    const all = isOfStatus ? [...args, ...capture.argsBesideStatus] : args
    return call(capture, 'writeHead', all)
  }
  const head = headOf(response, args, capture.keptHeaders)
  capture.waitingHead = postponeHead(capture, args)
  capture.head = head
  if (isEventStream(head)) happen(capture, 'outgrown')
  return response
}

/**
 * Middlewares that ask Node itself whether it has the head (compression before 1.8 and
 * express-session do) write it once more with each part of the body.
 */
const isRepeated = ({ statusCode }: ServerResponse, args: readonly unknown[]): boolean =>
  args.length === 1 && args[0] === statusCode

/** By way of the response, as Node does: an inner middleware may add its headers there. */
function writeImplicitHead(capture: Capture): Head {
  const { response } = capture
  if (capture.head === undefined) response.writeHead(response.statusCode)
  if (capture.head === undefined) writeHead(capture, [response.statusCode])
  return capture.head as unknown as Head
}

export function flushHeaders(capture: Capture): void {
  if (capture.phase === 'discarded') return
  writeImplicitHead(capture)
  if (capture.phase === 'flowing') send(capture, 'flushHeaders', [])
}

/** An outer middleware may wait before it ends the response, and then write by way of the response. */
const isFromOutside = ({ depth, phase, response }: Capture): boolean =>
  depth > 0 || (phase === 'delivered' && !response.finished)

/**
 * The app answers in place of what could not be sent. Where that fails, too, it was given the cause
 * before, and Express would throw it where nothing catches it.
 */
function sendFromOutside(capture: Capture, name: 'write' | 'end', args: unknown[]): unknown {
  if (capture.depth > 0 || !capture.hasFailed) return send(capture, name, args)
  try {
    return send(capture, name, args)
  } catch {
    call(capture, 'destroy', [])
    return name === 'end' ? capture.response : false
  }
}

export function write(capture: Capture, args: unknown[]): unknown {
  if (isFromOutside(capture)) return sendFromOutside(capture, 'write', args)
  const { chunk, encoding, callback } = writtenBy(args)
  if (!isOpen(capture.phase)) return tooLate(callback)
  if (capture.phase === 'flowing' || !isContent(chunk)) return send(capture, 'write', args)
  const head = writeImplicitHead(capture)
  if (capture.isHead || isBodyless(head.status)) {
    if (callback !== undefined) process.nextTick(callback)
    return true
  }
  const bytes = bytesOf(chunk, encoding)
  assertLength(head, capture.keptBytes + bytes.byteLength, false)
  keep(capture, bytes, callback)
  return isHeld(capture.phase)
}

export function tooLate(callback: Callback | undefined): false {
  if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
  return false
}

export function end(capture: Capture, args: unknown[]): unknown {
  const { response, observer } = capture
  if (isFromOutside(capture)) return sendFromOutside(capture, 'end', args)
  const { chunk, encoding, callback } = writtenBy(args)
  if (!isOpen(capture.phase)) {
    tooLate(callback)
    return response
  }
  if (chunk && !isContent(chunk)) return send(capture, 'end', args)
  if (capture.phase === 'flowing') {
    finish(capture)
    sendAfter(capture, observer.flowed(), () => deliverEnd(capture, args))
    return response
  }
  const bytes = isContent(chunk) ? bytesOf(chunk, encoding) : NOTHING
  const isLeftToEnd = capture.head === undefined
  const head = writeImplicitHead(capture)
  if (capture.waitingHead !== undefined) capture.waitingHead.isLeftToEnd = isLeftToEnd
  capture.endCallback = callback
  if (!capture.isHead && !isBodyless(head.status)) {
    assertLength(head, capture.keptBytes + bytes.byteLength, true)
    if (bytes.byteLength > 0) keep(capture, bytes, undefined)
  }
  if (isHeld(capture.phase)) complete(capture, head)
  else finish(capture)
  return response
}

const NOTHING = new Uint8Array()

export function destroy(capture: Capture, args: unknown[]): unknown {
  if (postpone(capture, () => call(capture, 'destroy', args))) return capture.response
  happen(capture, isLostBehind(capture.response, args[0]) ? 'disconnected' : 'destroyed')
  return call(capture, 'destroy', args)
}

/** The argument of `write` or `end`. */
export interface Written {
  readonly chunk: unknown
  readonly encoding: BufferEncoding | undefined
  readonly callback: Callback | undefined
}

/** `write` and `end` take their callback in any place. */
export function writtenBy(args: readonly unknown[]): Written {
  const callback = args.find((arg) => typeof arg === 'function') as Callback | undefined
  const [chunk, encoding] = args
  return {
    chunk: typeof chunk === 'function' ? undefined : chunk,
    encoding: typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined,
    callback,
  }
}

/** What Node lets a response be written with. */
export const isContent = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === 'string' || types.isUint8Array(chunk)

/** A copy: a handler may use its buffer again once it has been called back. */
export const bytesOf = (
  chunk: string | Uint8Array,
  encoding: BufferEncoding | undefined,
): Uint8Array => (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk))

/** The error for a callback of a late write. */
export const writeAfterEnd = (): Error =>
  Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' })

/** The error for a callback of a discarded answer. */
export const writeDiscarded = (): Error =>
  Object.assign(new Error('the response was discarded'), { code: 'ERR_STREAM_DESTROYED' })
