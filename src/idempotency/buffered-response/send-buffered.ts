import type { ServerResponse } from 'node:http'
import type { PipeWatch } from './client-connection.js'
import { isDisconnected } from './client-connection.js'
import { type Header, isHeadSent, sendHead, type WaitingHead } from './deferred-head.js'
import type { Head } from './head.js'
import { type Callback, call, type Sending, send, sendAfter } from './original-functions.js'
import { advance, isDue, isHeld, type Phase, type PhaseEvent } from './phase.js'
import type { StoredResult } from './stored-result.js'

/** Callbacks for the stages of a response. Their promises need not resolve, only settle. */
export interface CaptureObserver {
  /** The whole response; no byte of it is sent before the promise settles. */
  complete(result: StoredResult): Promise<void>
  /** It cannot be held back; its first byte waits for the promise. */
  flow(): Promise<void>
  /** A response that flowed has ended or was cut off; its last byte waits for the promise. */
  flowed(): Promise<void>
  /** It was cut off while it was held back. */
  cutOff(): void
  /**
   * It could not be sent: an outer middleware has thrown, or Node. Where its head has not been sent
   * either, the app can answer in its place.
   */
  unsent(error: unknown): void
}

export interface CaptureOptions {
  readonly response: ServerResponse
  /** The largest body that is held back. */
  readonly maxBytes: number
  /** The names of the headers that are kept, in lower case; `content-type` is one of them. */
  readonly keptHeaders: ReadonlySet<string>
  readonly isHead: boolean
}

/** A response as it was when it was captured. */
export interface Entered {
  readonly headers: readonly Header[]
  readonly on: ServerResponse['on']
  /** `sendDate` is among them because the header `Date` is: to take it off changes the field. */
  readonly fields: Pick<
    ServerResponse,
    'statusCode' | 'statusMessage' | 'sendDate' | 'strictContentLength'
  >
}

/** Those who wait for a response to take more. */
export interface DrainWatch {
  /** Stops recording listeners: the response flows, and the stream that has them wakes them. */
  stop(): void
  /** Wakes those who wait. */
  wake(): void
}

/** A response that is held back: how far it has come, and what has been kept of it. */
export interface Capture extends CaptureOptions, Sending {
  readonly observer: CaptureObserver
  readonly drain: DrainWatch
  readonly pipes: PipeWatch
  readonly entered: Entered
  /** The function by which its head is written, whatever an inner middleware has put before it. */
  ownWriteHead: ServerResponse['writeHead']
  phase: Phase
  /** From when the handler has written it. */
  head: Head | undefined
  /** As long as it has been written and is yet to be sent. */
  waitingHead: WaitingHead | undefined
  isChunkingRemoved: boolean
  argsBesideStatus: readonly unknown[]
  kept: { readonly bytes: Uint8Array; readonly callback: Callback | undefined }[]
  keptBytes: number
  endCallback: Callback | undefined
  /** Whether it has been thrown away, and its handler may still write the rest. */
  isHandlerWriting: boolean
  /** Whether it could not be sent. */
  hasFailed: boolean
  /** The deferred `destroy` of the response before it was sent. */
  readonly postponed: (() => void)[]
}

/** Changes the phase, and does what follows from the change. */
export function happen(capture: Capture, event: PhaseEvent): void {
  const { observer, phase: before } = capture
  const phase = advance(before, event)
  if (phase === before) return
  capture.phase = phase
  if (phase === 'opening') sendAfter(capture, observer.flow(), () => open(capture))
  else if (before === 'held' && (phase === 'dropped' || phase === 'over')) observer.cutOff()
  else if (before === 'flowing' && phase === 'over') void observer.flowed()
}

/** Keeps a part of the body. */
export function keep(capture: Capture, bytes: Uint8Array, callback: Callback | undefined): void {
  capture.keptBytes += bytes.byteLength
  if (capture.keptBytes > capture.maxBytes) happen(capture, 'outgrown')
  const isCalledNow = isHeld(capture.phase)
  capture.kept.push({ bytes, callback: isCalledNow ? undefined : callback })
  if (isCalledNow && callback !== undefined) process.nextTick(callback)
}

/** The handler has ended a response that is held back: it is sent once it has been kept. */
export function complete(capture: Capture, { status, headers }: Head): void {
  const { kept, observer, endCallback } = capture
  finish(capture)
  capture.kept = []
  const [first] = kept
  const isOne = first !== undefined && kept.length === 1
  const body = isOne ? first.bytes : Buffer.concat(kept.map(({ bytes }) => bytes))
  const args = [body.byteLength > 0 ? body : undefined, endCallback]
  sendAfter(capture, observer.complete({ status, headers, body }), () => deliverEnd(capture, args))
}

/** From here on `writableEnded` is true, as after Node's `end`, although nothing has been sent. */
export function finish(capture: Capture): void {
  happen(capture, 'finished')
  showEnded(capture.response, true)
}

/** Ends the response by the functions that it had before. */
export function deliverEnd(capture: Capture, args: readonly unknown[]): void {
  if (capture.phase === 'discarded') return
  showEnded(capture.response, false)
  // Inner middlewares have already changed the head.
  if (capture.waitingHead?.isLeftToEnd) capture.response.writeHead = capture.ownWriteHead
  try {
    sendHead(capture)
    send(capture, 'end', args)
  } finally {
    showEnded(capture.response, true)
    happen(capture, 'delivered')
    for (const breakOff of capture.postponed) breakOff()
  }
}

/** Gives the app its turn where it can still answer, and breaks the connection where it cannot. */
export function fail(capture: Capture, error: unknown): void {
  const { response, phase, observer } = capture
  const isAnswerable = phase === 'delivered' && !isHeadSent(response)
  if (isAnswerable) showEnded(response, false)
  else call(capture, 'destroy', [])
  capture.hasFailed = true
  capture.argsBesideStatus = []
  try {
    observer.unsent(error)
  } catch {
    // The app's own answer has failed, too: in an outer middleware, say.
    call(capture, 'destroy', [])
  }
}

/** Whether the response is yet to be sent: `breakOff` is then done behind it. */
export function postpone({ phase, postponed }: Capture, breakOff: () => void): boolean {
  if (!isDue(phase)) return false
  postponed.push(breakOff)
  return true
}

/** Leaves Node's `finished` alone: by it, a server that closes takes the connection for an idle one. */
function showEnded(response: { writableEnded: boolean }, value: boolean): void {
  if (Object.hasOwn(response, 'writableEnded')) response.writableEnded = value
  else
    Object.defineProperty(response, 'writableEnded', { configurable: true, writable: true, value })
}

/** Sends what has been kept; from here on everything passes. */
function open(capture: Capture): void {
  if (capture.phase === 'discarded') return
  const { response, observer, kept, endCallback } = capture
  capture.kept = []
  capture.drain.stop()
  happen(capture, 'recorded')
  if (capture.waitingHead?.isLeftToEnd) {
    // One piece, which its handler has ended it with.
    const args = [kept[0]?.bytes, endCallback]
    sendAfter(capture, observer.flowed(), () => deliverEnd(capture, args))
    return
  }
  sendHead(capture)
  let isDrained = kept.length > 0
  for (const { bytes, callback } of kept) {
    isDrained = send(capture, 'write', [bytes, callback]) === true
  }
  if (kept.length === 0) send(capture, 'flushHeaders', [])
  if (capture.phase === 'ending') {
    sendAfter(capture, observer.flowed(), () => deliverEnd(capture, [undefined, endCallback]))
  } else if (capture.phase === 'over') void observer.flowed()
  else if (isDisconnected(response)) happen(capture, 'disconnected')
  else if (isDrained) capture.drain.wake()
}
