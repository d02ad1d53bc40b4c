import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { watchInterruption } from './client-connection.js'
import { forgetHead, headersOf, isHeadSent } from './deferred-head.js'
import * as answerFunctions from './discarding-functions.js'
import { keepHeadInOrder } from './head.js'
import { call, createInterception, type Sending } from './original-functions.js'
import { advance, isOpen } from './phase.js'
import * as functions from './replacement-functions.js'
import { writeDiscarded } from './replacement-functions.js'
import {
  type Capture,
  type CaptureObserver,
  type CaptureOptions,
  type DrainWatch,
  type Entered,
  fail,
  happen,
  postpone,
} from './send-buffered.js'

const hold = createInterception<Capture>(functions)

/** A response that is held back. */
export interface HeldResponse {
  /**
   * Throws away what is held: the head is again what it was when the response was captured, and the
   * app can answer again. Returns `false` where it cannot: the first byte has been passed on, or the
   * response is gone.
   */
  discard(): boolean
}

/**
 * Holds a response back until its observer has kept it, whichever way its handler sends it: in the
 * end all ways are functions of the response, and these stand before them.
 */
export function captureResponse(options: CaptureOptions, observer: CaptureObserver): HeldResponse {
  const { response } = options
  keepHeadInOrder(response)
  const entered = enteredAs(response)
  const capture = hold(response, (found): Capture => {
    const pipes = watchInterruption({
      response,
      postpones: (breakOff) => postpone(capture, breakOff),
      interrupted: () => {
        happen(capture, 'interrupted')
        // Node's own `end`, called around ours, has sent a body without its head.
        if (response.finished && !isHeadSent(response)) response.req.socket.destroy()
      },
      disconnected: () => happen(capture, 'disconnected'),
    })
    return {
      ...options,
      observer,
      entered,
      ownWriteHead: response.writeHead,
      failed: (error) => fail(capture, error),
      found,
      depth: 0,
      drain: watchDrain(response),
      pipes,
      phase: 'held',
      head: undefined,
      waitingHead: undefined,
      isChunkingRemoved: false,
      argsBesideStatus: [],
      kept: [],
      keptBytes: 0,
      endCallback: undefined,
      isHandlerWriting: false,
      hasFailed: false,
      postponed: [],
    }
  })
  capture.ownWriteHead = response.writeHead
  return { discard: () => discard(capture) }
}

// Functions of their own: what an inner middleware has still in its hands leads to those of the
// held response, which is no more.
const answerAgain = createInterception<Capture>(answerFunctions)

/** Throws away what is held of a response. Returns whether the app can answer in its place. */
function discard(capture: Capture): boolean {
  const { response, kept, endCallback, pipes, drain, phase } = capture
  if (response.finished || isHeadSent(response)) return false
  if (advance(phase, 'discarded') === phase) return false
  capture.isHandlerWriting = capture.head !== undefined && isOpen(phase)
  happen(capture, 'discarded')
  capture.kept = []
  drain.stop()
  pipes.unpipe()
  answerAgain(response, () => capture)
  forgetHead(capture)
  Reflect.deleteProperty(response, 'writableEnded')
  restore(capture, capture.entered)
  for (const callback of [...kept.map((each) => each.callback), endCallback]) {
    if (callback !== undefined) process.nextTick(callback, writeDiscarded())
  }
  return true
}

function enteredAs(response: ServerResponse): Entered {
  const { statusCode, statusMessage, sendDate, strictContentLength, on } = response
  const fields = { statusCode, statusMessage, sendDate, strictContentLength }
  return { headers: headersOf(response), on, fields }
}

/** Makes a response again what it was, by the functions that it had then. */
function restore(sending: Sending, { headers, on, fields }: Entered): void {
  const { response } = sending
  const wasConnectionSet = response.hasHeader('connection')
  // All of them, so that they come in their order again.
  for (const name of response.getHeaderNames()) call(sending, 'removeHeader', [name])
  for (const header of headers) call(sending, 'setHeader', header)
  // Node no longer says so by itself once the header has been removed.
  if (wasConnectionSet && !response.hasHeader('connection') && !response.shouldKeepAlive) {
    call(sending, 'setHeader', ['Connection', 'close'])
  }
  Object.assign(response, fields)
  if (response.on !== on) response.on = on
  // Trailers would go with a later answer that has none.
  response.addTrailers({})
}

type Listener = (...args: unknown[]) => void

/**
 * Watches who waits for the response's `drain`. An outer middleware that writes through a stream of
 * its own (compression, say) has replaced `response.on` and keeps their listeners on that stream,
 * where `response.emit` does not reach them: they are noted here.
 */
export function watchDrain(response: ServerResponse): DrainWatch {
  const { on } = response
  if (on === EventEmitter.prototype.on) {
    return { stop() {}, wake: () => void response.emit('drain') }
  }

  const keptElsewhere = new Set<Listener>()
  let isWatching = true
  const noting = function (this: ServerResponse, name: string | symbol, listener: Listener) {
    if (!isWatching) return Reflect.apply(on, this, [name, listener])
    const before = response.listenerCount(name)
    const returned: unknown = Reflect.apply(on, this, [name, listener])
    if (name === 'drain' && response.listenerCount(name) === before) keptElsewhere.add(listener)
    return returned
  } as typeof on
  response.on = noting

  return {
    stop() {
      isWatching = false
      // An inner middleware may have put its own before it since.
      if (response.on === noting) response.on = on
    },
    wake() {
      response.emit('drain')
      for (const listener of keptElsewhere) Reflect.apply(listener, response, [])
      keptElsewhere.clear()
    },
  }
}
