import type { ServerResponse } from 'node:http'
import type { PipeWatch } from './client-connection.js'
import { isDisconnected } from './client-connection.js'
import { type DeferredHead, type Header, isHeadSent, sendHead } from './deferred-head.js'
import type { Head } from './head.js'
import {
  type Callback,
  callOriginal,
  type Sender,
  sendAfter,
  sendByOriginal,
} from './original-functions.js'
import { advance, isBuffering, isEndedUnsent, type Phase, type PhaseEvent } from './phase.js'
import type { StoredResult } from './stored-result.js'

/** Callbacks for the stages of a response. Their promises need not resolve, only settle. */
export interface BufferObserver {
  /** The whole response; no byte of it is sent before the promise settles. */
  onComplete(result: StoredResult): Promise<void>
  /** It cannot be held back; its first byte waits for the promise. */
  onStream(): Promise<void>
  /** A response that flowed has ended or was cut off; its last byte waits for the promise. */
  onStreamEnd(): Promise<void>
  /** It was cut off while it was held back. */
  onAbort(): void
  /**
   * It could not be sent: an outer middleware has thrown, or Node. Where its head has not been sent
   * either, the app can answer in its place.
   */
  onSendError(error: unknown): void
}

export interface BufferOptions {
  readonly response: ServerResponse
  /** The largest body that is held back. */
  readonly maxBytes: number
  /** The names of the headers that are kept, in lower case; `content-type` is one of them. */
  readonly storedHeaders: ReadonlySet<string>
  readonly isHead: boolean
}

/** A response as it was when it was captured. */
export interface InitialState {
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
  emitDrain(): void
}

/** A response that is held back: how far it has come, and what has been kept of it. */
export interface BufferedResponse extends BufferOptions, Sender {
  readonly observer: BufferObserver
  readonly drain: DrainWatch
  readonly pipes: PipeWatch
  readonly initialState: InitialState
  /** The function by which its head is written, whatever an inner middleware has put before it. */
  ownWriteHead: ServerResponse['writeHead']
  phase: Phase
  /** From when the handler has written it. */
  head: Head | undefined
  /** As long as it has been written and is yet to be sent. */
  deferredHead: DeferredHead | undefined
  isChunkingRemoved: boolean
  headArgsAfterStatus: readonly unknown[]
  chunks: { readonly bytes: Uint8Array; readonly callback: Callback | undefined }[]
  bufferedBytes: number
  endCallback: Callback | undefined
  /** Whether it has been thrown away, and its handler may still write the rest. */
  isHandlerWriting: boolean
  /** Whether it could not be sent. */
  hasSendFailed: boolean
  /** The deferred `destroy` of the response before it was sent. */
  readonly deferredDestroys: (() => void)[]
}

/** Changes the phase, and does what follows from the change. */
export function dispatch(buffered: BufferedResponse, event: PhaseEvent): void {
  const { observer, phase: before } = buffered
  const phase = advance(before, event)
  if (phase === before) return
  buffered.phase = phase
  if (phase === 'switching')
    sendAfter(buffered, observer.onStream(), () => startStreaming(buffered))
  else if (before === 'buffering' && (phase === 'orphaned' || phase === 'aborted'))
    observer.onAbort()
  else if (before === 'streaming' && phase === 'aborted') void observer.onStreamEnd()
}

/** Keeps a part of the body. */
export function bufferChunk(
  buffered: BufferedResponse,
  bytes: Uint8Array,
  callback: Callback | undefined,
): void {
  buffered.bufferedBytes += bytes.byteLength
  if (buffered.bufferedBytes > buffered.maxBytes) dispatch(buffered, 'too_large')
  const isBufferingStill = isBuffering(buffered.phase)
  buffered.chunks.push({ bytes, callback: isBufferingStill ? undefined : callback })
  if (isBufferingStill && callback !== undefined) process.nextTick(callback)
}

/** The handler has ended a response that is held back: it is sent once it has been kept. */
export function sendOnceStored(buffered: BufferedResponse, { status, headers }: Head): void {
  const { chunks, observer, endCallback } = buffered
  markEnded(buffered)
  buffered.chunks = []
  const [first] = chunks
  const hasOneChunk = first !== undefined && chunks.length === 1
  const body = hasOneChunk ? first.bytes : Buffer.concat(chunks.map(({ bytes }) => bytes))
  const args = [body.byteLength > 0 ? body : undefined, endCallback]
  sendAfter(buffered, observer.onComplete({ status, headers, body }), () => sendEnd(buffered, args))
}

/** From here on `writableEnded` is true, as after Node's `end`, although nothing has been sent. */
export function markEnded(buffered: BufferedResponse): void {
  dispatch(buffered, 'finished')
  setWritableEnded(buffered.response, true)
}

/** Ends the response by the functions that it had before. */
export function sendEnd(buffered: BufferedResponse, args: readonly unknown[]): void {
  if (buffered.phase === 'discarded') return
  setWritableEnded(buffered.response, false)
  // Inner middlewares have already changed the head.
  if (buffered.deferredHead?.isImplicit) buffered.response.writeHead = buffered.ownWriteHead
  try {
    sendHead(buffered)
    sendByOriginal(buffered, 'end', args)
  } finally {
    setWritableEnded(buffered.response, true)
    dispatch(buffered, 'sent')
    for (const destroy of buffered.deferredDestroys) destroy()
  }
}

/** Gives the app its turn where it can still answer, and breaks the connection where it cannot. */
export function handleSendError(buffered: BufferedResponse, error: unknown): void {
  const { response, phase, observer } = buffered
  const isAnswerable = phase === 'sent' && !isHeadSent(response)
  if (isAnswerable) setWritableEnded(response, false)
  else callOriginal(buffered, 'destroy', [])
  buffered.hasSendFailed = true
  buffered.headArgsAfterStatus = []
  try {
    observer.onSendError(error)
  } catch {
    // The app's own answer has failed, too: in an outer middleware, say.
    callOriginal(buffered, 'destroy', [])
  }
}

/** Whether the response is yet to be sent: `breakOff` is then done behind it. */
export function deferDestroy(
  { phase, deferredDestroys }: BufferedResponse,
  destroy: () => void,
): boolean {
  if (!isEndedUnsent(phase)) return false
  deferredDestroys.push(destroy)
  return true
}

/** Leaves Node's `finished` alone: by it, a server that closes takes the connection for an idle one. */
function setWritableEnded(response: { writableEnded: boolean }, value: boolean): void {
  if (Object.hasOwn(response, 'writableEnded')) response.writableEnded = value
  else
    Object.defineProperty(response, 'writableEnded', { configurable: true, writable: true, value })
}

/** Sends what has been kept; from here on everything passes. */
function startStreaming(buffered: BufferedResponse): void {
  if (buffered.phase === 'discarded') return
  const { response, observer, chunks, endCallback } = buffered
  buffered.chunks = []
  buffered.drain.stop()
  dispatch(buffered, 'recorded')
  if (buffered.deferredHead?.isImplicit) {
    // One piece, which its handler has ended it with.
    const args = [chunks[0]?.bytes, endCallback]
    sendAfter(buffered, observer.onStreamEnd(), () => sendEnd(buffered, args))
    return
  }
  sendHead(buffered)
  let isDrained = chunks.length > 0
  for (const { bytes, callback } of chunks) {
    isDrained = sendByOriginal(buffered, 'write', [bytes, callback]) === true
  }
  if (chunks.length === 0) sendByOriginal(buffered, 'flushHeaders', [])
  if (buffered.phase === 'streaming_ended') {
    sendAfter(buffered, observer.onStreamEnd(), () => sendEnd(buffered, [undefined, endCallback]))
  } else if (buffered.phase === 'aborted') void observer.onStreamEnd()
  else if (isDisconnected(response)) dispatch(buffered, 'disconnected')
  else if (isDrained) buffered.drain.emitDrain()
}
