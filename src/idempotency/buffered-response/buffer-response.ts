import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { watchInterruption } from './client-connection.js'
import { clearDeferredHead, headersOf, isHeadSent } from './deferred-head.js'
import * as discardingFunctions from './discarding-functions.js'
import { keepHeadInOrder } from './head.js'
import { callOriginal, createReplacer, type Sender } from './original-functions.js'
import { advance, isWritable } from './phase.js'
import * as replacementFunctions from './replacement-functions.js'
import { writeDiscarded } from './replacement-functions.js'
import {
  type BufferedResponse,
  type BufferObserver,
  type BufferOptions,
  type DrainWatch,
  deferDestroy,
  dispatch,
  handleSendError,
  type InitialState,
} from './send-buffered.js'

const replaceFunctions = createReplacer<BufferedResponse>(replacementFunctions)

/** A response that is held back. */
export interface BufferControl {
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
export function bufferResponse(options: BufferOptions, observer: BufferObserver): BufferControl {
  const { response } = options
  keepHeadInOrder(response)
  const initialState = takeSnapshot(response)
  const buffered = replaceFunctions(response, (originals): BufferedResponse => {
    const pipes = watchInterruption({
      response,
      deferDestroy: (destroy) => deferDestroy(buffered, destroy),
      onInterrupt: () => {
        dispatch(buffered, 'interrupted')
        // Node's own `end`, called around ours, has sent a body without its head.
        if (response.finished && !isHeadSent(response)) response.req.socket.destroy()
      },
      onDisconnect: () => dispatch(buffered, 'disconnected'),
    })
    return {
      ...options,
      observer,
      initialState,
      ownWriteHead: response.writeHead,
      onError: (error) => handleSendError(buffered, error),
      originals,
      callsUnderWay: 0,
      drain: watchDrain(response),
      pipes,
      phase: 'buffering',
      head: undefined,
      deferredHead: undefined,
      isChunkingRemoved: false,
      headArgsAfterStatus: [],
      chunks: [],
      bufferedBytes: 0,
      endCallback: undefined,
      isHandlerWriting: false,
      hasSendFailed: false,
      deferredDestroys: [],
    }
  })
  buffered.ownWriteHead = response.writeHead
  return { discard: () => discard(buffered) }
}

// Functions of their own: what an inner middleware has still in its hands leads to those of the
// held response, which is no more.
const replaceByDiscarding = createReplacer<BufferedResponse>(discardingFunctions)

/** Throws away what is held of a response. Returns whether the app can answer in its place. */
function discard(buffered: BufferedResponse): boolean {
  const { response, chunks, endCallback, pipes, drain, phase } = buffered
  if (response.finished || isHeadSent(response)) return false
  if (advance(phase, 'discarded') === phase) return false
  buffered.isHandlerWriting = buffered.head !== undefined && isWritable(phase)
  dispatch(buffered, 'discarded')
  buffered.chunks = []
  drain.stop()
  pipes.unpipe()
  replaceByDiscarding(response, () => buffered)
  clearDeferredHead(buffered)
  Reflect.deleteProperty(response, 'writableEnded')
  restore(buffered, buffered.initialState)
  for (const callback of [...chunks.map((each) => each.callback), endCallback]) {
    if (callback !== undefined) process.nextTick(callback, writeDiscarded())
  }
  return true
}

function takeSnapshot(response: ServerResponse): InitialState {
  const { statusCode, statusMessage, sendDate, strictContentLength, on } = response
  const fields = { statusCode, statusMessage, sendDate, strictContentLength }
  return { headers: headersOf(response), on, fields }
}

/** Makes a response again what it was, by the functions that it had then. */
function restore(sender: Sender, { headers, on, fields }: InitialState): void {
  const { response } = sender
  const wasConnectionSet = response.hasHeader('connection')
  // All of them, so that they come in their order again.
  for (const name of response.getHeaderNames()) callOriginal(sender, 'removeHeader', [name])
  for (const header of headers) callOriginal(sender, 'setHeader', header)
  // Node no longer says so by itself once the header has been removed.
  if (wasConnectionSet && !response.hasHeader('connection') && !response.shouldKeepAlive) {
    callOriginal(sender, 'setHeader', ['Connection', 'close'])
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
    return { stop() {}, emitDrain: () => void response.emit('drain') }
  }

  const listenersElsewhere = new Set<Listener>()
  let isWatching = true
  const recordListener = function (
    this: ServerResponse,
    name: string | symbol,
    listener: Listener,
  ) {
    if (!isWatching) return Reflect.apply(on, this, [name, listener])
    const before = response.listenerCount(name)
    const returned: unknown = Reflect.apply(on, this, [name, listener])
    if (name === 'drain' && response.listenerCount(name) === before)
      listenersElsewhere.add(listener)
    return returned
  } as typeof on
  response.on = recordListener

  return {
    stop() {
      isWatching = false
      // An inner middleware may have put its own before it since.
      if (response.on === recordListener) response.on = on
    },
    emitDrain() {
      response.emit('drain')
      for (const listener of listenersElsewhere) Reflect.apply(listener, response, [])
      listenersElsewhere.clear()
    },
  }
}
