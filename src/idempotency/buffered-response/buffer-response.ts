import { watchDrain } from './back-pressure.js'
import { writeDiscarded } from './chunk.js'
import {
  type Capture,
  type CaptureObserver,
  type CaptureOptions,
  fail,
  happen,
  postpone,
} from './delivery.js'
import * as answerFunctions from './discarding-functions.js'
import { enteredAs, restore } from './initial-state.js'
import { createInterception } from './interception.js'
import { watchInterruption } from './interruption.js'
import { advance, isOpen } from './phase.js'
import { keepHeadInOrder } from './queued-head.js'
import * as functions from './replacement-functions.js'
import { forgetHead, isHeadSent } from './waiting-head.js'

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
