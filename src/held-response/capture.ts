import { watchDrain } from './back-pressure.js'
import {
  type Capture,
  type CaptureObserver,
  type CaptureOptions,
  happen,
  postpone,
} from './delivery.js'
import * as functions from './functions.js'
import { createInterception } from './interception.js'
import { watchInterruption } from './interruption.js'

const hold = createInterception<Capture>(functions)

/**
 * Holds a response back until its observer has kept it, whichever way its handler sends it: in the
 * end all ways are functions of the response, and these stand before them.
 */
export function captureResponse(options: CaptureOptions, observer: CaptureObserver): void {
  const { response } = options
  hold(response, (found) => {
    const capture: Capture = {
      ...options,
      observer,
      found,
      depth: 0,
      drain: watchDrain(response),
      phase: 'held',
      head: undefined,
      kept: [],
      keptBytes: 0,
      endCallback: undefined,
      postponed: [],
    }
    watchInterruption({
      response,
      postpones: (breakOff) => postpone(capture, breakOff),
      interrupted: () => happen(capture, 'interrupted'),
      disconnected: () => happen(capture, 'disconnected'),
    })
    return capture
  })
}
