import type { ServerResponse } from 'node:http'
import { isDisconnected, type PipeWatch } from './client-connection.js'
import { type DeferredHead, type Head, type Header, isHeadSent, sendHead } from './head.js'
import {
  type Callback,
  callOriginal,
  type Sender,
  sendAfter,
  sendByOriginal,
} from './original-functions.js'
import { advance, isBuffering, isEndedUnsent, type Phase, type PhaseEvent } from './phase.js'
import type { StoredResult } from './stored-result.js'

/** Callbacks of a buffered response. It does not matter whether their promises resolve or reject. */
export interface BufferObserver {
  /** The response is complete; no byte of it is sent before the promise settles. */
  onComplete(result: StoredResult): Promise<void>
  /** The response cannot be buffered; its first byte waits for the promise. */
  onStream(): Promise<void>
  /** The response was aborted while it was buffered. */
  onAbort(): void
  /**
   * The response could not be sent, because an outer middleware or Node has thrown. If its head was not
   * sent either, the app can answer instead.
   */
  onSendError(error: unknown): void
}

export interface BufferOptions {
  readonly response: ServerResponse
  /** The largest body that is buffered. */
  readonly maxBytes: number
  /** The names of the headers to store, in lower case; `content-type` is one of them. */
  readonly storedHeaders: ReadonlySet<string>
  readonly isHead: boolean
}

/** A response before it was buffered. */
export interface InitialState {
  readonly headers: readonly Header[]
  readonly on: ServerResponse['on']
  /** `sendDate` is one of them, because Node changes it when the header `Date` is removed. */
  readonly fields: Pick<
    ServerResponse,
    'statusCode' | 'statusMessage' | 'sendDate' | 'strictContentLength'
  >
}

/** The listeners that wait until a response accepts more. */
export interface DrainWatch {
  /** Stops recording listeners: once the response streams, the stream that has the listeners calls them. */
  stop(): void
  emitDrain(): void
}

export interface BufferedResponse extends BufferOptions, Sender {
  readonly observer: BufferObserver
  readonly drain: DrainWatch
  readonly pipes: PipeWatch
  /** Set once the response is discarded. */
  initialState: InitialState | undefined
  /** Our `writeHead`, even if an inner middleware has replaced it. */
  ownWriteHead: ServerResponse['writeHead']
  phase: Phase
  /** Set once the handler has written the head. */
  head: Head | undefined
  /** Set while the head is written and not sent. */
  deferredHead: DeferredHead | undefined
  isChunkingRemoved: boolean
  headArgsAfterStatus: readonly unknown[]
  chunks: { readonly bytes: Uint8Array; readonly callback: Callback | undefined }[]
  bufferedBytes: number
  endCallback: Callback | undefined
  /** Whether the answer was discarded and its handler may still write the rest. */
  isHandlerWriting: boolean
  hasSendFailed: boolean
  /** Calls that destroy the response or its connection, to run after it was sent. */
  readonly deferredDestroys: (() => void)[]
}

/** Changes the phase and notifies the observer. */
export function dispatch(buffered: BufferedResponse, event: PhaseEvent): void {
  const { observer, phase: before } = buffered
  const phase = advance(before, event)
  if (phase === before) return
  buffered.phase = phase
  if (phase === 'switching')
    sendAfter(buffered, observer.onStream(), () => startStreaming(buffered))
  else if (before === 'buffering' && (phase === 'orphaned' || phase === 'aborted'))
    observer.onAbort()
}

export function bufferChunk(
  buffered: BufferedResponse,
  bytes: Uint8Array,
  callback: Callback | undefined,
): void {
  buffered.bufferedBytes += bytes.byteLength
  if (buffered.bufferedBytes > buffered.maxBytes) dispatch(buffered, 'unbufferable')
  const isBufferingStill = isBuffering(buffered.phase)
  buffered.chunks.push({ bytes, callback: isBufferingStill ? undefined : callback })
  if (isBufferingStill && callback !== undefined) process.nextTick(callback)
}

/** The handler has ended a buffered response: stores it, then sends it. */
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

/** Sets `writableEnded`, as Node's `end` does, although nothing has been sent. */
export function markEnded(buffered: BufferedResponse): void {
  dispatch(buffered, 'finished')
  setWritableEnded(buffered.response, true)
}

/** Ends the response by its original functions. */
export function sendEnd(buffered: BufferedResponse, args: readonly unknown[]): void {
  if (buffered.phase === 'discarded') return
  setWritableEnded(buffered.response, false)
  // Inner middlewares have already changed the head. Their `writeHead` would change it again.
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

/** Lets the app answer if it still can, and destroys the response if not. */
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
    // The app's own answer has failed too, for example in an outer middleware.
    callOriginal(buffered, 'destroy', [])
  }
}

/** Whether the response is still to be sent. If so, `destroy` runs after it was sent. */
export function deferDestroy(
  { phase, deferredDestroys }: BufferedResponse,
  destroy: () => void,
): boolean {
  if (!isEndedUnsent(phase)) return false
  deferredDestroys.push(destroy)
  return true
}

/** Does not set Node's `finished`, because `server.close()` would then treat the connection as idle. */
function setWritableEnded(response: { writableEnded: boolean }, value: boolean): void {
  if (Object.hasOwn(response, 'writableEnded')) response.writableEnded = value
  else
    Object.defineProperty(response, 'writableEnded', { configurable: true, writable: true, value })
}

/** Sends the buffered part; later writes pass through. */
function startStreaming(buffered: BufferedResponse): void {
  if (buffered.phase === 'discarded') return
  const { response, chunks, endCallback } = buffered
  buffered.chunks = []
  buffered.drain.stop()
  dispatch(buffered, 'recorded')
  if (buffered.deferredHead?.isImplicit) {
    // The handler passed the whole body to `end`.
    sendEnd(buffered, [chunks[0]?.bytes, endCallback])
    return
  }
  sendHead(buffered)
  let isDrained = chunks.length > 0
  for (const { bytes, callback } of chunks) {
    isDrained = sendByOriginal(buffered, 'write', [bytes, callback]) === true
  }
  if (chunks.length === 0) sendByOriginal(buffered, 'flushHeaders', [])
  if (buffered.phase === 'streaming_ended') sendEnd(buffered, [undefined, endCallback])
  else if (buffered.phase === 'aborted') return
  else if (isDisconnected(response)) dispatch(buffered, 'disconnected')
  else if (isDrained) buffered.drain.emitDrain()
}
