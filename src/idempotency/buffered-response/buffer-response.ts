import type { ServerResponse } from 'node:http'
import { types } from 'node:util'
import { isQueuedOnLostConnection, watchClosing } from './closing.js'
import {
  answerByApp,
  type Callback,
  type InitialState,
  type ResponseFunctions,
  rejectWrite,
  restore,
  takeSnapshot,
} from './discard.js'
import { applyHead, type Head, isEventStream, isHeadSent, keepHeadInOrder } from './head.js'
import { isBodyless, type StoredResult } from './stored-result.js'

/** Callbacks of a buffered response. It does not matter whether their promises resolve or reject. */
export interface BufferObserver {
  /** The response is complete; no byte of it is sent before the promise settles. */
  onComplete(result: StoredResult): Promise<void>
  /** The response cannot be buffered; its first byte waits for the promise. */
  onStream(): Promise<void>
  /** Nothing is left that would end the response. If it still ends, `onComplete` follows. */
  onAbort(): void
  /**
   * The response could not be sent, because an outer middleware or Node has thrown. If its head was not
   * sent either, the app can answer instead.
   */
  onSendError(error: unknown): void
}

interface BufferOptions {
  readonly response: ServerResponse
  /** The largest body that is buffered. */
  readonly maxBytes: number
  /** The names of the headers to store, in lower case; `content-type` is one of them. */
  readonly storedHeaders: ReadonlySet<string>
  readonly isHead: boolean
}

/** Discards a buffered response. */
interface BufferControl {
  /**
   * Discards the buffered answer and restores the head as `bufferResponse` found it, so that the app can answer.
   * Returns `false` if it cannot: the first byte has been sent, or the handler has destroyed the response.
   */
  discard(): boolean
}

/**
 * - `buffering`: nothing is sent; the handler is at work.
 * - `waiting`: nothing is sent until the store has replied. The response is complete, or it cannot be buffered and the
 *   handler may still write.
 * - `released`: everything passes through to the original functions.
 * - `discarded`: the app answers instead of the handler.
 */
type Phase = 'buffering' | 'waiting' | 'released' | 'discarded'

interface BufferedResponse extends BufferOptions {
  readonly observer: BufferObserver
  /** The functions that the response had before they were replaced: Node's, or those of an outer middleware. */
  readonly originals: ResponseFunctions
  readonly initial: InitialState
  phase: Phase
  /** Set once the handler has written the head. */
  head: Head | undefined
  chunks: Uint8Array[]
  bufferedBytes: number
  /** Callbacks that wait until the body is sent. */
  callbacks: Callback[]
  isEnded: boolean
  /** Whether `onAbort` was called. */
  isAborted: boolean
  hasSendFailed: boolean
}

const STATE = Symbol('express-service-auth response')

/** A property, not a `WeakMap`, so that a proxy of the response, an object below it or a copy is buffered too. */
type Carrier = ServerResponse & { [STATE]: BufferedResponse }

type AnyFunction = (this: Carrier, ...args: unknown[]) => unknown

/**
 * The functions of a buffered response that every way of sending ends in, so it does not matter how the handler sends.
 * They are the same for all responses, because closures for each response would cost more than everything else here.
 */
const FUNCTIONS = {
  setHeader: changeHeaders('setHeader', 'set'),
  setHeaders: changeHeaders('setHeaders', 'set'),
  appendHeader: changeHeaders('appendHeader', 'append'),
  removeHeader: changeHeaders('removeHeader', 'remove'),
  writeHead,
  flushHeaders,
  write,
  end,
  destroy,
} satisfies Record<keyof ResponseFunctions, AnyFunction>

/** What the handler sees is as if its head and its end had been sent. */
const VISIBLE_STATE = {
  headersSent: {
    configurable: true,
    get(this: Carrier): boolean {
      return isHeadHeld(this[STATE]) || isHeadSent(this)
    },
  },
  writableEnded: {
    configurable: true,
    get(this: Carrier): boolean {
      return isEndHeld(this[STATE]) || this.finished
    },
  },
}

const isHeld = ({ phase }: BufferedResponse): boolean =>
  phase === 'buffering' || phase === 'waiting'
const isHeadHeld = (buffered: BufferedResponse): boolean =>
  buffered.head !== undefined && isHeld(buffered)
const isEndHeld = (buffered: BufferedResponse): boolean => buffered.isEnded && isHeld(buffered)

/** Buffers a response until its observer has stored it. */
export function bufferResponse(options: BufferOptions, observer: BufferObserver): BufferControl {
  const { response } = options
  const initial = takeSnapshot(response)
  keepHeadInOrder(response)
  const carrier = response as unknown as ResponseFunctions
  const { setHeader, setHeaders, appendHeader, removeHeader, writeHead } = carrier
  const { flushHeaders, write, end, destroy } = carrier
  const ofHead = { setHeader, setHeaders, appendHeader, removeHeader, writeHead, flushHeaders }
  const buffered: BufferedResponse = {
    ...options,
    observer,
    originals: { ...ofHead, write, end, destroy },
    initial,
    phase: 'buffering',
    head: undefined,
    chunks: [],
    bufferedBytes: 0,
    callbacks: [],
    isEnded: false,
    isAborted: false,
    hasSendFailed: false,
  }
  Object.assign(response, { [STATE]: buffered }, FUNCTIONS)
  Object.defineProperties(response, VISIBLE_STATE)
  watchClosing(response, () => abort(buffered))
  return { discard: () => discard(buffered) }
}

const callOriginal = (
  { response, originals }: BufferedResponse,
  name: keyof ResponseFunctions,
  args: readonly unknown[],
): unknown => Reflect.apply(originals[name], response, args)

function abort(buffered: BufferedResponse): void {
  if (buffered.phase !== 'buffering' || buffered.isAborted) return
  buffered.isAborted = true
  buffered.observer.onAbort()
}

/** After `writeHead` the functions throw, as Node's do. */
function changeHeaders(
  name: 'setHeader' | 'setHeaders' | 'appendHeader' | 'removeHeader',
  verb: string,
): AnyFunction {
  return function (...args) {
    const buffered = this[STATE]
    if (buffered.phase === 'discarded') return buffered.response
    if (isHeadHeld(buffered)) throw headersSentError(verb)
    return callOriginal(buffered, name, args)
  }
}

function writeHead(this: Carrier, ...args: unknown[]): unknown {
  const buffered = this[STATE]
  const { response, phase, head } = buffered
  if (phase === 'discarded') return response
  if (phase === 'released') return callOriginal(buffered, 'writeHead', args)
  if (head === undefined) holdHead(buffered, args)
  // Middlewares that check Node's own state of the head (compression before 1.8 and express-session do) write it again
  // with each part of the body.
  else if (args.length !== 1 || args[0] !== response.statusCode) throw headersSentError('write')
  return response
}

function holdHead(buffered: BufferedResponse, args: readonly unknown[]): void {
  buffered.head = applyHead(buffered.response, args, buffered.storedHeaders)
  if (isEventStream(buffered.head)) streamOnceRecorded(buffered)
}

/** Calls `response.writeHead`, as Node does, because an inner middleware may add headers there. */
function writeImplicitHead(buffered: BufferedResponse): Head {
  const { response } = buffered
  if (buffered.head === undefined) response.writeHead(response.statusCode)
  // A middleware's `writeHead` may not have called ours.
  if (buffered.head === undefined) holdHead(buffered, [response.statusCode])
  return buffered.head as unknown as Head
}

function flushHeaders(this: Carrier): void {
  const buffered = this[STATE]
  if (buffered.phase === 'released') callOriginal(buffered, 'flushHeaders', [])
  else if (buffered.phase !== 'discarded') writeImplicitHead(buffered)
}

function write(this: Carrier, ...args: unknown[]): unknown {
  const buffered = this[STATE]
  if (buffered.phase === 'released') return callOriginal(buffered, 'write', args)
  if (buffered.isEnded || buffered.phase === 'discarded') return rejectWrite(args)
  const { chunk, encoding, callback } = parseWriteArguments(args)
  // Node throws its error for a chunk of another type.
  if (!isContent(chunk)) return callOriginal(buffered, 'write', args)
  const head = writeImplicitHead(buffered)
  if (!hasBody(buffered, head)) {
    if (callback !== undefined) process.nextTick(callback)
    return true
  }
  bufferChunk(buffered, copyBytes(chunk, encoding))
  if (buffered.phase === 'buffering') {
    if (callback !== undefined) process.nextTick(callback)
    return true
  }
  if (callback !== undefined) buffered.callbacks.push(callback)
  return !isDrainHeard(buffered.response)
}

function end(this: Carrier, ...args: unknown[]): unknown {
  const buffered = this[STATE]
  const { response, observer } = buffered
  if (buffered.phase === 'released') return endReleased(buffered, args)
  if (buffered.isEnded || buffered.phase === 'discarded') {
    rejectWrite(args)
    return response
  }
  const { chunk, encoding, callback } = parseWriteArguments(args)
  // Node throws its error for a chunk of another type.
  if (chunk && !isContent(chunk)) return callOriginal(buffered, 'end', args)
  const bytes = isContent(chunk) ? copyBytes(chunk, encoding) : NO_BYTES
  const isImplicit = buffered.head === undefined
  const head = writeImplicitHead(buffered)
  head.isImplicit = isImplicit
  if (hasBody(buffered, head)) bufferChunk(buffered, bytes)
  buffered.isEnded = true
  if (callback !== undefined) buffered.callbacks.push(callback)
  if (buffered.phase === 'buffering') {
    const { status, headers } = head
    const body = joinChunks(buffered)
    wait(buffered, () => observer.onComplete({ status, headers, body }))
  }
  return response
}

/**
 * The app may answer instead of a response that could not be sent. If its answer fails too, that error is dropped:
 * the app already has the cause, and Express would throw the error where nothing catches it.
 */
function endReleased(buffered: BufferedResponse, args: readonly unknown[]): unknown {
  if (!buffered.hasSendFailed) return callOriginal(buffered, 'end', args)
  try {
    return callOriginal(buffered, 'end', args)
  } catch {
    return callOriginal(buffered, 'destroy', [])
  }
}

function destroy(this: Carrier, ...args: unknown[]): unknown {
  const buffered = this[STATE]
  if (buffered.phase === 'buffering' && !isQueuedOnLostConnection(buffered.response, args[0])) {
    abort(buffered)
    buffered.phase = 'released'
  }
  return callOriginal(buffered, 'destroy', args)
}

const hasBody = ({ isHead }: BufferedResponse, { status }: Head): boolean =>
  !isHead && !isBodyless(status)

function bufferChunk(buffered: BufferedResponse, bytes: Uint8Array): void {
  if (bytes.byteLength > 0) buffered.chunks.push(bytes)
  buffered.bufferedBytes += bytes.byteLength
  const isTooLarge = buffered.bufferedBytes > buffered.maxBytes
  if (buffered.phase === 'buffering' && isTooLarge) streamOnceRecorded(buffered)
}

const streamOnceRecorded = (buffered: BufferedResponse): void =>
  wait(buffered, () => buffered.observer.onStream())

function joinChunks(buffered: BufferedResponse): Uint8Array {
  const { chunks } = buffered
  const [first] = chunks
  const body = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
  buffered.chunks = [body]
  return body
}

/** Asks the store, and releases the response once it has replied. */
function wait(buffered: BufferedResponse, askStore: () => Promise<void>): void {
  buffered.phase = 'waiting'
  const proceed = (): void => release(buffered)
  askStore().then(proceed, proceed)
}

function release(buffered: BufferedResponse): void {
  if (buffered.phase !== 'waiting') return
  buffered.phase = 'released'
  try {
    send(buffered)
  } catch (error) {
    handleSendError(buffered, error)
  }
}

/** Sends what is buffered by the original functions. */
function send(buffered: BufferedResponse): void {
  const { response, callbacks, bufferedBytes, isEnded } = buffered
  const { status, statusMessage, isImplicit } = buffered.head as Head
  // The handler may have changed them since, which changes no head that is sent.
  response.statusCode = status
  response.statusMessage = statusMessage
  // Inner middlewares have already changed the head. Their `writeHead` would change it again.
  response.writeHead = FUNCTIONS.writeHead as ServerResponse['writeHead']
  if (!isImplicit) callOriginal(buffered, 'writeHead', [status])
  const body = bufferedBytes === 0 ? undefined : joinChunks(buffered)
  buffered.chunks = []
  const callback = callbacks.length === 0 ? undefined : callAll(callbacks)
  if (isEnded) {
    callOriginal(buffered, 'end', [body, callback])
    return
  }
  if (body === undefined) {
    callOriginal(buffered, 'flushHeaders', [])
    return
  }
  const isDrained = callOriginal(buffered, 'write', [body, callback]) === true
  if (isDrained && isDrainHeard(response)) response.emit('drain')
}

const callAll =
  (callbacks: readonly Callback[]): Callback =>
  (error) => {
    for (const callback of callbacks) callback(error)
  }

/**
 * Whether listeners of the response's `drain` are where `emit` reaches them. An outer middleware that writes through
 * another stream, as compression does, has replaced `on` and adds them to that stream.
 */
const isDrainHeard = (response: ServerResponse): boolean => !Object.hasOwn(response, 'on')

/** Lets the app answer if it still can, and destroys the response if not. */
function handleSendError(buffered: BufferedResponse, error: unknown): void {
  const { response, observer, isEnded } = buffered
  if (!isEnded || isHeadSent(response)) callOriginal(buffered, 'destroy', [])
  buffered.hasSendFailed = true
  try {
    observer.onSendError(error)
  } catch {
    // The app's own answer has failed too, for example in an outer middleware.
    callOriginal(buffered, 'destroy', [])
  }
}

function discard(buffered: BufferedResponse): boolean {
  const { response, originals, initial, callbacks, head, isEnded } = buffered
  if (!isHeld(buffered) || response.finished || isHeadSent(response)) return false
  buffered.phase = 'discarded'
  buffered.chunks = []
  restore(response, originals, initial)
  // An inner middleware may still call the first functions, which now do nothing.
  answerByApp(response, originals, head !== undefined && !isEnded)
  rejectWrite(callbacks)
  return true
}

/** The error for a change of a head that has been written. */
const headersSentError = (verb: string): Error => {
  const message = `Cannot ${verb} headers after they are sent to the client`
  return Object.assign(new Error(message), { code: 'ERR_HTTP_HEADERS_SENT' })
}

/** `write` and `end` accept their callback in any position. */
function parseWriteArguments(args: readonly unknown[]) {
  const callback = args.find((arg) => typeof arg === 'function') as Callback | undefined
  const [chunk, encoding] = args
  return {
    chunk: typeof chunk === 'function' ? undefined : chunk,
    encoding: typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined,
    callback,
  }
}

const isContent = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === 'string' || types.isUint8Array(chunk)

const NO_BYTES = new Uint8Array()

/** Copies the bytes, because a handler may reuse its buffer after its callback. */
const copyBytes = (chunk: string | Uint8Array, encoding: BufferEncoding | undefined): Uint8Array =>
  typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk)
