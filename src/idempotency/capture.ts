import type { ServerResponse } from 'node:http'
import {
  type Capture,
  type CaptureObserver,
  type CaptureOptions,
  captureOf,
  hasNoBody,
  isHeld,
} from './capture-state.js'
import { type Callback, isContent, normalise, octetsOf, writeAfterEnd } from './chunk.js'
import { isEventStream, snapshotHeaders } from './header-snapshot.js'
import { watchLocalDestroy } from './local-destroy.js'
import type { Sender } from './sender.js'
import { watchSources } from './sources.js'

/**
 * Holds a response back until its observer has kept it, however a handler sends it, by standing
 * before `writeHead`, `flushHeaders`, `write`, `end` and `destroy` of this one response.
 */
export function captureResponse(options: CaptureOptions, observer: CaptureObserver): void {
  const { response } = options
  const capture = captureOf(options, observer)
  standBefore(capture)
  response.once('close', () => closed(capture))
  watchSources(response, () => cutOff(capture))
  watchLocalDestroy(response, () => {
    if (capture.head !== undefined) cutOff(capture)
  })
}

function standBefore(capture: Capture): void {
  const { response } = capture
  response.writeHead = ((...args: unknown[]) => writeHead(capture, args)) as Sender['writeHead']
  response.flushHeaders = () => flushHeaders(capture)
  response.write = ((...args: unknown[]) => write(capture, args)) as Sender['write']
  response.end = ((...args: unknown[]) => end(capture, args)) as Sender['end']
  response.destroy = (error) => destroy(capture, error)
  Object.defineProperty(response, 'writableEnded', {
    configurable: true,
    get: () => capture.isEnded,
  })
}

// Node keeps the head until the first byte, and from here on says itself that it is too late to
// change it.
function writeHead(capture: Capture, args: unknown[]): ServerResponse {
  const { response, sender } = capture
  if (capture.head === undefined) {
    const [status, reason, given] = args
    const headers = snapshotHeaders(
      response,
      typeof reason === 'string' ? given : (given ?? reason),
    )
    Reflect.apply(sender.writeHead, response, args)
    // Node makes an integer of it likewise.
    capture.head = { status: Number(status) | 0, headers }
    if (isEventStream(headers)) open(capture)
  } else Reflect.apply(sender.writeHead, response, args)
  return response
}

/** By way of the response, as Node does: an inner middleware may add its headers there. */
function writeImplicitHead(capture: Capture): void {
  const { response } = capture
  if (capture.head === undefined) response.writeHead(response.statusCode)
  if (capture.head === undefined) writeHead(capture, [response.statusCode])
}

function flushHeaders(capture: Capture): void {
  writeImplicitHead(capture)
  capture.wantsFlush = true
  if (capture.phase === 'flowing') capture.sender.flushHeaders()
}

function write(capture: Capture, args: unknown[]): boolean {
  const { response, sender } = capture
  const { chunk, encoding, callback } = normalise(args)
  if (sender.isSending()) return Reflect.apply(sender.write, response, args)
  if (capture.isEnded) {
    if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
    return false
  }
  if (capture.phase === 'flowing' || !isContent(chunk))
    return Reflect.apply(sender.write, response, args)
  writeImplicitHead(capture)
  if (hasNoBody(capture)) {
    if (callback !== undefined) process.nextTick(callback)
    return true
  }
  // A copy: a handler may use its buffer again once it has been called back.
  keep(capture, octetsOf(chunk, encoding), callback)
  if (isHeld(capture)) return true
  capture.wantsDrain = true
  return false
}

function end(capture: Capture, args: unknown[]): ServerResponse {
  const { response, sender, observer } = capture
  const { chunk, encoding, callback } = normalise(args)
  if (sender.isSending()) return Reflect.apply(sender.end, response, args)
  if (capture.isEnded) {
    if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
    return response
  }
  if (chunk && !isContent(chunk)) return Reflect.apply(sender.end, response, args)
  if (capture.phase === 'flowing') {
    capture.isEnded = true
    sender.after(observer.flowed(), () => Reflect.apply(sender.end, response, args))
    return response
  }
  const octets = isContent(chunk) ? octetsOf(chunk, encoding) : Buffer.alloc(0)
  announceLength(capture, octets.byteLength)
  writeImplicitHead(capture)
  capture.isEnded = true
  capture.endCallback = callback
  if (octets.byteLength > 0 && !hasNoBody(capture)) keep(capture, octets, undefined)
  if (isHeld(capture)) complete(capture)
  return response
}

/** Of a response that comes in one piece Node would tell the length by itself. */
function announceLength(capture: Capture, length: number): void {
  const { response } = capture
  if (capture.head !== undefined || hasNoBody(capture)) return
  const framing = ['content-length', 'transfer-encoding', 'trailer']
  if (!framing.some((name) => response.hasHeader(name)))
    response.setHeader('Content-Length', length)
}

function complete(capture: Capture): void {
  const { head, chunks, observer, sender, endCallback } = capture
  if (head === undefined) return
  const body = Buffer.concat(chunks.map(({ octets }) => octets))
  capture.chunks = []
  sender.after(observer.complete({ ...head, body }), () => {
    if (body.byteLength > 0) sender.end(body, endCallback)
    else sender.end(endCallback)
  })
}

function open(capture: Capture): void {
  capture.phase = 'opening'
  capture.sender.after(capture.observer.flow(), () => release(capture))
}

/** Sends what has been kept; from here on everything passes. */
function release(capture: Capture): void {
  const { response, sender, observer, chunks, endCallback } = capture
  capture.phase = 'flowing'
  capture.chunks = []
  let isDrained = true
  for (const { octets, callback } of chunks) isDrained = sender.write(octets, callback)
  if (capture.wantsFlush) sender.flushHeaders()
  if (capture.isEnded) sender.after(observer.flowed(), () => sender.end(endCallback))
  else if (response.destroyed) closed(capture)
  else if (capture.wantsDrain && isDrained) capture.drain()
}

function destroy(capture: Capture, error: Error | undefined): ServerResponse {
  cutOff(capture)
  closed(capture)
  capture.isEnded = true
  capture.sender.destroy(error)
  return capture.response
}

/** Nobody is left to end it. If somebody does all the same, that result counts. */
function cutOff(capture: Capture): void {
  if (capture.isEnded || capture.isCutOff || capture.phase !== 'held') return
  capture.isCutOff = true
  capture.observer.cutOff()
}

/** A caller that hangs up ends a response that flows; one that is held back may yet be completed. */
function closed(capture: Capture): void {
  if (capture.isEnded || capture.phase === 'held') return
  capture.isEnded = true
  if (capture.phase === 'flowing') void capture.observer.flowed()
}

function keep(capture: Capture, octets: Uint8Array, callback: Callback | undefined): void {
  capture.size += octets.byteLength
  if (capture.phase === 'held' && capture.size > capture.maxBytes) open(capture)
  const isLater = capture.phase === 'opening'
  capture.chunks.push({ octets, callback: isLater ? callback : undefined })
  if (!isLater && callback !== undefined) process.nextTick(callback)
}
