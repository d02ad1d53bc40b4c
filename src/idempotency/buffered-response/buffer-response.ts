import { watchDrain } from './back-pressure.js'
import {
  type Capture,
  type CaptureObserver,
  type CaptureOptions,
  fail,
  happen,
  postpone,
} from './delivery.js'
import { discard } from './discard.js'
import { enteredAs } from './initial-state.js'
import { createInterception } from './interception.js'
import { watchInterruption } from './interruption.js'
import { keepHeadInOrder } from './queued-head.js'
import * as functions from './replacement-functions.js'
import { isHeadSent } from './waiting-head.js'

const hold = createInterception<Capture>(functions)

/** A response that is held back. */
export interface HeldResponse {
  /**
   * Throws away what is held: the head is again what it was when the response was captured, and the
   * app can answer anew. Returns `false` where it cannot: the first byte has been passed on, or the
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
