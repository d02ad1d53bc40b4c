import { writeDiscarded } from './chunk.js'
import { type Capture, happen } from './delivery.js'
import * as answerFunctions from './discarding-functions.js'
import { restore } from './initial-state.js'
import { createInterception } from './interception.js'
import { advance, isOpen } from './phase.js'
import { forgetHead, isHeadSent } from './waiting-head.js'

// Functions of their own: what an inner middleware has still in its hands leads to those of the
// held response, which is no more.
const answerAnew = createInterception<Capture>(answerFunctions)

/** Throws away what is held of a response. Returns whether the app can answer in its place. */
export function discard(capture: Capture): boolean {
  const { response, kept, endCallback, pipes, drain, phase } = capture
  if (response.finished || isHeadSent(response)) return false
  if (advance(phase, 'discarded') === phase) return false
  capture.isHandlerWriting = capture.head !== undefined && isOpen(phase)
  happen(capture, 'discarded')
  capture.kept = []
  drain.stop()
  pipes.unpipe()
  answerAnew(response, () => capture)
  forgetHead(capture)
  Reflect.deleteProperty(response, 'writableEnded')
  restore(capture, capture.entered)
  for (const callback of [...kept.map((each) => each.callback), endCallback]) {
    if (callback !== undefined) process.nextTick(callback, writeDiscarded())
  }
  return true
}
