import type { ServerResponse } from 'node:http'
import {
  type Callback,
  isContent,
  lengthMismatch,
  octetsOf,
  writeAfterEnd,
  writtenBy,
} from './chunk.js'
import { isLostBehind } from './connection.js'
import { type Capture, complete, deliverEnd, finish, happen, keep, postpone } from './delivery.js'
import { type Head, headOf, isBodyless, isEventStream } from './head.js'
import { isHeld, isOpen } from './phase.js'
import { call, send, sendAfter } from './sending.js'

/*
 * What the handler of a held response calls instead of Node's functions.
 */

// Node keeps the head until the first byte, and from here on says itself that it is too late to
// change it.
export function writeHead(capture: Capture, args: unknown[]): ServerResponse {
  const { response } = capture
  const head = capture.head ?? headOf(response, args, capture.keptHeaders)
  call(capture, 'writeHead', args)
  if (capture.head === undefined) {
    capture.head = head
    if (isEventStream(head)) happen(capture, 'outgrown')
  }
  return response
}

/** By way of the response, as Node does: an inner middleware may add its headers there. */
function writeImplicitHead(capture: Capture): Head {
  const { response } = capture
  if (capture.head === undefined) response.writeHead(response.statusCode)
  if (capture.head === undefined) writeHead(capture, [response.statusCode])
  return capture.head as unknown as Head
}

export function flushHeaders(capture: Capture): void {
  writeImplicitHead(capture)
  if (capture.phase === 'flowing') send(capture, 'flushHeaders', [])
}

/** An outer middleware may wait before it ends the response, and then write by way of the response. */
const isFromOutside = ({ depth, phase, response }: Capture): boolean =>
  depth > 0 || (phase === 'delivered' && !response.finished)

export function write(capture: Capture, args: unknown[]): unknown {
  if (isFromOutside(capture)) return send(capture, 'write', args)
  const { chunk, encoding, callback } = writtenBy(args)
  if (!isOpen(capture.phase)) return tooLate(callback)
  if (capture.phase === 'flowing' || !isContent(chunk)) return send(capture, 'write', args)
  const head = writeImplicitHead(capture)
  if (capture.isHead || isBodyless(head.status)) {
    if (callback !== undefined) process.nextTick(callback)
    return true
  }
  const octets = octetsOf(chunk, encoding)
  assertLength(capture, head, { added: octets.byteLength, isLast: false })
  keep(capture, octets, callback)
  return isHeld(capture.phase)
}

function tooLate(callback: Callback | undefined): false {
  if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
  return false
}

export function end(capture: Capture, args: unknown[]): unknown {
  const { response, observer } = capture
  if (isFromOutside(capture)) return send(capture, 'end', args)
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
  const octets = isContent(chunk) ? octetsOf(chunk, encoding) : NOTHING
  const head = writeLastHead(capture, octets.byteLength)
  capture.endCallback = callback
  if (!capture.isHead && !isBodyless(head.status)) {
    assertLength(capture, head, { added: octets.byteLength, isLast: true })
    if (octets.byteLength > 0) keep(capture, octets, undefined)
  }
  if (isHeld(capture.phase)) complete(capture, head)
  else finish(capture)
  return response
}

const NOTHING = new Uint8Array()

/**
 * Writes the head of a response that is about to end. As Node does, it announces the length of a body
 * that comes in one piece; a head that fails leaves no such header behind.
 */
function writeLastHead(capture: Capture, length: number): Head {
  const { response } = capture
  const isOnePiece =
    capture.head === undefined && !capture.isHead && !isBodyless(response.statusCode)
  const isFramed = FRAMING.some((name) => response.hasHeader(name))
  if (!isOnePiece || isFramed) return writeImplicitHead(capture)
  response.setHeader('Content-Length', length)
  try {
    return writeImplicitHead(capture)
  } catch (error) {
    if (capture.head === undefined) response.removeHeader('Content-Length')
    throw error
  }
}

const FRAMING = ['content-length', 'transfer-encoding', 'trailer']

/** Node's own check comes too late: when the response is sent, it has been kept already. */
function assertLength(
  { keptBytes }: Capture,
  { strictLength }: Head,
  { added, isLast }: { added: number; isLast: boolean },
): void {
  if (strictLength === undefined) return
  const length = keptBytes + added
  if (length === strictLength || (length < strictLength && !isLast)) return
  throw lengthMismatch(length, strictLength)
}

export function destroy(capture: Capture, args: unknown[]): unknown {
  if (postpone(capture, () => call(capture, 'destroy', args))) return capture.response
  happen(capture, isLostBehind(capture.response, args[0]) ? 'disconnected' : 'destroyed')
  return call(capture, 'destroy', args)
}
