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
import { isDisconnected, watchConnection } from './connection.js'
import { announceLength, isSentWithHead } from './framing.js'
import { isEventStream, snapshotHeaders } from './header-snapshot.js'
import { watchSources } from './sources.js'
import { createStandIns } from './stand-in.js'

/**
 * Holds a response back until its observer has kept it, however a handler sends it, by standing
 * before the functions of this one response.
 */
export function captureResponse(options: CaptureOptions, observer: CaptureObserver): void {
  standIns.standBefore(options.response, (found) => captureOf(options, observer, found))
}

/** To be called before the first request, so that none is held back in another way than the rest. */
export const prepareCapture = (): void => standIns.prepare()

const standIns = createStandIns<Capture>({
  writeHead,
  flushHeaders,
  write,
  end,
  destroy,
  emit,
  writableEnded: ({ isEnded }) => isEnded,
})

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
    sender.call('writeHead', args)
    // Node makes an integer of it likewise.
    capture.head = { status: Number(status) | 0, headers }
    if (isEventStream(headers)) open(capture)
    if (!capture.isEnding) watch(capture)
  } else sender.call('writeHead', args)
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
  if (capture.phase === 'flowing') capture.sender.send('flushHeaders', [])
}

function write(capture: Capture, args: unknown[]): unknown {
  const { sender } = capture
  if (sender.isSending) return sender.send('write', args)
  const { chunk, encoding, callback } = normalise(args)
  if (capture.isEnded) {
    if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
    return false
  }
  if (capture.phase === 'flowing' || !isContent(chunk)) return sender.send('write', args)
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

function end(capture: Capture, args: unknown[]): unknown {
  const { response, sender, observer } = capture
  if (sender.isSending) return sender.send('end', args)
  const { chunk, encoding, callback } = normalise(args)
  if (capture.isEnded) {
    if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
    return response
  }
  if (chunk && !isContent(chunk)) return sender.send('end', args)
  if (capture.phase === 'flowing') {
    capture.isEnded = true
    sender.after(observer.flowed(), () => sender.send('end', args))
    return response
  }
  const octets = isContent(chunk) ? octetsOf(chunk, encoding) : NOTHING
  writeLastHead(capture, octets.byteLength)
  capture.isEnded = true
  capture.endCallback = callback
  const isAlone = capture.size === 0 && isSentWithHead(capture, chunk, encoding)
  if (octets.byteLength > 0 && !hasNoBody(capture)) keep(capture, octets, undefined)
  if (isHeld(capture)) complete(capture, isAlone ? args : undefined)
  return response
}

const NOTHING = new Uint8Array()

/** The head of a response that is ended; one that cannot be written leaves nothing behind. */
function writeLastHead(capture: Capture, length: number): void {
  const { response } = capture
  const isAnnounced = announceLength(capture, length)
  capture.isEnding = true
  try {
    writeImplicitHead(capture)
  } catch (error) {
    capture.isEnding = false
    if (capture.head !== undefined) watch(capture)
    else if (isAnnounced) response.removeHeader('Content-Length')
    throw error
  }
}

/** `ended`: the arguments that it was ended with, where they are the whole body. */
function complete(capture: Capture, ended: readonly unknown[] | undefined): void {
  const { head, chunks, observer, sender, endCallback } = capture
  if (head === undefined) return
  const [first] = chunks
  const isOne = first !== undefined && chunks.length === 1
  const body = isOne ? first.octets : Buffer.concat(chunks.map(({ octets }) => octets))
  capture.chunks = []
  const { status, headers } = head
  sender.after(observer.complete({ status, headers, body }), () => {
    if (body.byteLength > 0 && ended !== undefined) sender.send('end', ended)
    else if (body.byteLength > 0) sender.send('end', [body, endCallback])
    else sender.send('end', [endCallback])
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
  for (const { octets, callback } of chunks) {
    isDrained = sender.send('write', [octets, callback]) === true
  }
  if (capture.wantsFlush) sender.send('flushHeaders', [])
  if (capture.isEnded) sender.after(observer.flowed(), () => sender.send('end', [endCallback]))
  else if (isDisconnected(response)) closed(capture)
  else if (capture.wantsDrain && isDrained) capture.drain()
}

function destroy(capture: Capture, args: unknown[]): unknown {
  cutOff(capture)
  closed(capture)
  capture.isEnded = true
  return capture.sender.call('destroy', args)
}

function emit(capture: Capture, args: unknown[]): unknown {
  const [event] = args
  if (event === 'close') closed(capture)
  if (event === 'pipe' && !capture.isPipedInto) {
    capture.isPipedInto = true
    watchSources(capture.response, () => cutOff(capture))
  }
  return capture.sender.call('emit', args)
}

const watch = (capture: Capture): void =>
  watchConnection(capture.response, {
    destroyed: () => cutOff(capture),
    closed: () => closed(capture),
  })

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
