import type { ServerResponse } from 'node:http'
import { types } from 'node:util'
import { isQueuedOnLostConnection } from './client-connection.js'
import {
  deferHead,
  type Head,
  isEventStream,
  isHeadSent,
  readHead,
  throwHeadersSent,
} from './head.js'
import { type Callback, callOriginal, sendByOriginal } from './original-functions.js'
import { isBuffering, isWritable } from './phase.js'
import {
  type BufferedResponse,
  bufferChunk,
  deferDestroy,
  dispatch,
  markEnded,
  sendEnd,
  sendOnceStored,
} from './send-once-stored.js'
import { isBodyless } from './stored-result.js'

/*
 * The functions that the handler of a buffered response calls instead of Node's.
 */

type Replacement = (buffered: BufferedResponse, args: unknown[]) => unknown

/**
 * After `writeHead` the functions throw, as Node's do. After a discard they do nothing, so that the handler does
 * not change the answer that the app sends instead.
 */
const unlessDeferred =
  (name: 'setHeader' | 'setHeaders' | 'appendHeader' | 'removeHeader') =>
  (buffered: BufferedResponse, args: unknown[]): unknown => {
    if (buffered.phase === 'discarded') return buffered.response
    if (buffered.deferredHead !== undefined) return throwHeadersSent(name, args)
    return callOriginal(buffered, name, args)
  }

export const setHeader: Replacement = unlessDeferred('setHeader')
export const setHeaders: Replacement = unlessDeferred('setHeaders')
export const appendHeader: Replacement = unlessDeferred('appendHeader')
const removeUnlessDeferred = unlessDeferred('removeHeader')

export function removeHeader(buffered: BufferedResponse, args: unknown[]): unknown {
  const returned = removeUnlessDeferred(buffered, args)
  if (/^transfer-encoding$/i.test(String(args[0]))) buffered.isChunkingRemoved = true
  return returned
}

export function writeHead(buffered: BufferedResponse, args: unknown[]): unknown {
  const { response } = buffered
  if (buffered.phase === 'discarded') return response
  if (buffered.deferredHead !== undefined) {
    return isSameHead(response, args) ? response : throwHeadersSent('writeHead', args)
  }
  if (buffered.head !== undefined || isHeadSent(response)) {
    // Node's `end` writes the head with the status alone, without the other arguments of the deferred head.
    const hasStatusOnly = args.length === 1 && !isHeadSent(response)
    const all = hasStatusOnly ? [...args, ...buffered.headArgsAfterStatus] : args
    return callOriginal(buffered, 'writeHead', all)
  }
  const head = readHead(response, args, buffered.storedHeaders)
  buffered.deferredHead = deferHead(buffered, args)
  buffered.head = head
  if (isEventStream(head)) dispatch(buffered, 'unbufferable')
  return response
}

/**
 * Middlewares that check Node's own state of the head (compression before 1.8 and express-session do)
 * write it again with each part of the body.
 */
const isSameHead = ({ statusCode }: ServerResponse, args: readonly unknown[]): boolean =>
  args.length === 1 && args[0] === statusCode

/** Calls `response.writeHead`, as Node does, because an inner middleware may add headers there. */
function writeImplicitHead(buffered: BufferedResponse): Head {
  const { response } = buffered
  if (buffered.head === undefined) response.writeHead(response.statusCode)
  // A middleware's `writeHead` may not have called ours.
  if (buffered.head === undefined) writeHead(buffered, [response.statusCode])
  return buffered.head as unknown as Head
}

export function flushHeaders(buffered: BufferedResponse): void {
  if (buffered.phase === 'discarded') return
  writeImplicitHead(buffered)
  if (buffered.phase === 'streaming') sendByOriginal(buffered, 'flushHeaders', [])
}

/** Compression, for one, ends the response after our call of its `end` has returned. */
const isFromOuterMiddleware = ({ callsInProgress, phase, response }: BufferedResponse): boolean =>
  callsInProgress > 0 || (phase === 'sent' && !response.finished)

/**
 * The app may answer instead of a response that could not be sent. If its answer fails too, that error is dropped:
 * the app already has the cause, and Express would throw the error where nothing catches it.
 */
function sendForOuterMiddleware(
  buffered: BufferedResponse,
  name: 'write' | 'end',
  args: unknown[],
): unknown {
  if (buffered.callsInProgress > 0 || !buffered.hasSendFailed)
    return sendByOriginal(buffered, name, args)
  try {
    return sendByOriginal(buffered, name, args)
  } catch {
    callOriginal(buffered, 'destroy', [])
    return name === 'end' ? buffered.response : false
  }
}

export function write(buffered: BufferedResponse, args: unknown[]): unknown {
  if (isFromOuterMiddleware(buffered)) return sendForOuterMiddleware(buffered, 'write', args)
  const { chunk, encoding, callback } = parseWriteArguments(args)
  if (!isWritable(buffered.phase)) return rejectLateWrite(callback)
  if (buffered.phase === 'streaming' || !isContent(chunk))
    return sendByOriginal(buffered, 'write', args)
  const head = writeImplicitHead(buffered)
  if (buffered.isHead || isBodyless(head.status)) {
    if (callback !== undefined) process.nextTick(callback)
    return true
  }
  const bytes = copyBytes(chunk, encoding)
  assertLength(head, buffered.bufferedBytes + bytes.byteLength, false)
  bufferChunk(buffered, bytes, callback)
  return isBuffering(buffered.phase)
}

export function rejectLateWrite(callback: Callback | undefined): false {
  if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
  return false
}

export function end(buffered: BufferedResponse, args: unknown[]): unknown {
  const { response } = buffered
  if (isFromOuterMiddleware(buffered)) return sendForOuterMiddleware(buffered, 'end', args)
  const { chunk, encoding, callback } = parseWriteArguments(args)
  if (!isWritable(buffered.phase)) {
    rejectLateWrite(callback)
    return response
  }
  // Node throws its error for a chunk of another type.
  if (chunk && !isContent(chunk)) return sendByOriginal(buffered, 'end', args)
  if (buffered.phase === 'streaming') {
    markEnded(buffered)
    sendEnd(buffered, args)
    return response
  }
  const bytes = isContent(chunk) ? copyBytes(chunk, encoding) : NO_BYTES
  const isImplicit = buffered.head === undefined
  const head = writeImplicitHead(buffered)
  if (buffered.deferredHead !== undefined) buffered.deferredHead.isImplicit = isImplicit
  buffered.endCallback = callback
  if (!buffered.isHead && !isBodyless(head.status)) {
    assertLength(head, buffered.bufferedBytes + bytes.byteLength, true)
    if (bytes.byteLength > 0) bufferChunk(buffered, bytes, undefined)
  }
  if (isBuffering(buffered.phase)) sendOnceStored(buffered, head)
  else markEnded(buffered)
  return response
}

const NO_BYTES = new Uint8Array()

/**
 * Throws Node's error for a body of another length. Node's own check comes too late: when the response is sent,
 * it is already stored.
 */
export function assertLength({ strictLength }: Head, length: number, isLast: boolean): void {
  if (strictLength === undefined) return
  if (length === strictLength || (length < strictLength && !isLast)) return
  const message = `Response body's content-length of ${length} byte(s) does not match the content-length of ${strictLength} byte(s) set in header`
  throw Object.assign(new Error(message), { code: 'ERR_HTTP_CONTENT_LENGTH_MISMATCH' })
}

export function destroy(buffered: BufferedResponse, args: unknown[]): unknown {
  if (deferDestroy(buffered, () => callOriginal(buffered, 'destroy', args)))
    return buffered.response
  dispatch(
    buffered,
    isQueuedOnLostConnection(buffered.response, args[0]) ? 'disconnected' : 'destroyed',
  )
  return callOriginal(buffered, 'destroy', args)
}

/** The arguments of `write` or `end`. */
export interface WriteArguments {
  readonly chunk: unknown
  readonly encoding: BufferEncoding | undefined
  readonly callback: Callback | undefined
}

/** `write` and `end` accept their callback in any position. */
export function parseWriteArguments(args: readonly unknown[]): WriteArguments {
  const callback = args.find((arg) => typeof arg === 'function') as Callback | undefined
  const [chunk, encoding] = args
  return {
    chunk: typeof chunk === 'function' ? undefined : chunk,
    encoding: typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined,
    callback,
  }
}

export const isContent = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === 'string' || types.isUint8Array(chunk)

/** Copies the bytes, because a handler may reuse its buffer after its callback. */
export const copyBytes = (
  chunk: string | Uint8Array,
  encoding: BufferEncoding | undefined,
): Uint8Array => (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk))

/** The error for the callback of a write after the end. */
export const writeAfterEnd = (): Error =>
  Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' })

/** The error for the callback of a discarded write. */
export const writeDiscarded = (): Error =>
  Object.assign(new Error('the response was discarded'), { code: 'ERR_STREAM_DESTROYED' })
