import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { watchInterruption } from './client-connection.js'
import * as discardingFunctions from './discarding-functions.js'
import { clearDeferredHead, copyHeaders, isHeadSent } from './head.js'
import { callOriginal, createReplacer, type Sender } from './original-functions.js'
import { advance, isWritable } from './phase.js'
import { keepHeadInOrder } from './queued-head.js'
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
} from './send-once-stored.js'

const replaceFunctions = createReplacer<BufferedResponse>(replacementFunctions)

/** Discards a buffered response. */
interface BufferControl {
  /**
   * Discards the buffered answer and restores the head, a snapshot taken before `bufferResponse`, so that the app
   * can answer again. Returns `false` if it cannot: the first byte has been sent, or the response is closed.
   */
  discard(before: InitialState): boolean
}

/**
 * Buffers a response until its observer has stored it. It replaces the functions of the response that
 * every way of sending ends in, so it does not matter how the handler sends.
 */
export function bufferResponse(options: BufferOptions, observer: BufferObserver): BufferControl {
  const { response } = options
  keepHeadInOrder(response)
  const buffered = replaceFunctions(response, (originals): BufferedResponse => {
    const pipes = watchInterruption({
      response,
      deferDestroy: (destroy) => deferDestroy(buffered, destroy),
      onInterrupt: () => {
        dispatch(buffered, 'interrupted')
        // Code that called `end` of Node's prototype, not our replacement, has sent a body without its head.
        if (response.finished && !isHeadSent(response)) response.req.socket.destroy()
      },
      onDisconnect: () => dispatch(buffered, 'disconnected'),
    })
    return {
      ...options,
      observer,
      initialState: undefined,
      ownWriteHead: response.writeHead,
      onError: (error) => handleSendError(buffered, error),
      originals,
      callsInProgress: 0,
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
  return { discard: (before) => discard(buffered, before) }
}

// A second set of functions, because an inner middleware may still call the first set for the discarded
// response.
const replaceByDiscarding = createReplacer<BufferedResponse>(discardingFunctions)

function discard(buffered: BufferedResponse, initialState: InitialState): boolean {
  const { response, chunks, endCallback, pipes, drain, phase } = buffered
  if (response.finished || isHeadSent(response)) return false
  if (advance(phase, 'discarded') === phase) return false
  buffered.isHandlerWriting = buffered.head !== undefined && isWritable(phase)
  dispatch(buffered, 'discarded')
  buffered.initialState = initialState
  buffered.chunks = []
  drain.stop()
  pipes.unpipe()
  replaceByDiscarding(response, () => buffered)
  clearDeferredHead(buffered)
  Reflect.deleteProperty(response, 'writableEnded')
  restore(buffered, initialState)
  for (const callback of [...chunks.map((each) => each.callback), endCallback]) {
    if (callback !== undefined) process.nextTick(callback, writeDiscarded())
  }
  return true
}

/** Returns what `discard` restores. */
export function takeSnapshot(response: ServerResponse): InitialState {
  const { statusCode, statusMessage, sendDate, strictContentLength, on } = response
  const fields = { statusCode, statusMessage, sendDate, strictContentLength }
  return { headers: copyHeaders(response), on, fields }
}

/** Restores a response by its original functions. */
function restore(sender: Sender, { headers, on, fields }: InitialState): void {
  const { response } = sender
  const wasConnectionSet = response.hasHeader('connection')
  // Removes all headers, to restore their order.
  for (const name of response.getHeaderNames()) callOriginal(sender, 'removeHeader', [name])
  for (const header of headers) callOriginal(sender, 'setHeader', header)
  // Node no longer sets the header itself once it has been removed.
  if (wasConnectionSet && !response.hasHeader('connection') && !response.shouldKeepAlive) {
    callOriginal(sender, 'setHeader', ['Connection', 'close'])
  }
  Object.assign(response, fields)
  if (response.on !== on) response.on = on
  // Otherwise a later answer without trailers would send the trailers of the discarded answer.
  response.addTrailers({})
}

type Listener = (...args: unknown[]) => void

/**
 * Records the listeners of the response's `drain`. An outer middleware that writes through another
 * stream (as compression does) has replaced `response.on` and adds listeners to that stream, where
 * `response.emit` does not reach them.
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
      // An inner middleware may have replaced `response.on` since.
      if (response.on === recordListener) response.on = on
    },
    emitDrain() {
      response.emit('drain')
      for (const listener of listenersElsewhere) Reflect.apply(listener, response, [])
      listenersElsewhere.clear()
    },
  }
}
