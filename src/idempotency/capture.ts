import type { ServerResponse } from 'node:http'
import { type Callback, isContent, normalise, writeAfterEnd } from './chunk.js'
import { isEventStream, snapshotHeaders } from './header-snapshot.js'
import type { StoredResult } from './result.js'
import { watchSources } from './sources.js'

/** Who is told what becomes of a response. What it returns never rejects. */
export interface CaptureObserver {
  /** The whole response; no byte of it is sent before the promise resolves. */
  complete(result: StoredResult): Promise<void>
  /** It cannot be held back; its first byte waits for the promise. */
  flow(): Promise<void>
  /** A response that flowed has ended or was cut off; its last byte waits for the promise. */
  flowed(): Promise<void>
  /** It was cut off while it was held back. */
  cutOff(): void
}

export interface CaptureOptions {
  readonly response: ServerResponse
  /** The largest body that is held back. */
  readonly maxBytes: number
  readonly isHead: boolean
}

type Originals = Pick<ServerResponse, 'writeHead' | 'flushHeaders' | 'write' | 'end' | 'destroy'>

interface Capture extends CaptureOptions {
  readonly observer: CaptureObserver
  readonly send: Originals
  /**
   * `held`: nothing is sent. `opening`: too large or an event stream, waiting for the record to say
   * so. `flowing`: everything passes.
   */
  phase: 'held' | 'opening' | 'flowing'
  head: Omit<StoredResult, 'body'> | undefined
  chunks: { readonly octets: Uint8Array; readonly callback: Callback | undefined }[]
  size: number
  /** Nothing more comes from the handler. */
  isEnded: boolean
  endCallback: Callback | undefined
  wantsFlush: boolean
  wantsDrain: boolean
}

/**
 * Holds a response back until its observer has kept it, however a handler sends it, by standing
 * before `writeHead`, `flushHeaders`, `write`, `end` and `destroy` of this one response.
 */
export function captureResponse(options: CaptureOptions, observer: CaptureObserver): void {
  const { response } = options
  const capture: Capture = {
    ...options,
    observer,
    send: {
      writeHead: response.writeHead.bind(response),
      flushHeaders: response.flushHeaders.bind(response),
      write: response.write.bind(response),
      end: response.end.bind(response),
      destroy: response.destroy.bind(response),
    } as Originals,
    phase: 'held',
    head: undefined,
    chunks: [],
    size: 0,
    isEnded: false,
    endCallback: undefined,
    wantsFlush: false,
    wantsDrain: false,
  }
  response.writeHead = ((...args: unknown[]) => writeHead(capture, args)) as Originals['writeHead']
  response.flushHeaders = () => flushHeaders(capture)
  response.write = ((...args: unknown[]) => write(capture, args)) as Originals['write']
  response.end = ((...args: unknown[]) => end(capture, args)) as Originals['end']
  response.destroy = (error) => destroy(capture, error)
  Object.defineProperty(response, 'writableEnded', {
    configurable: true,
    get: () => capture.isEnded,
  })
  response.once('close', () => closed(capture))
  watchSources(response, () => {
    if (!capture.isEnded && capture.phase === 'held') observer.cutOff()
  })
}

// Node keeps the head until the first byte, and from here on says itself that it is too late to
// change it.
function writeHead(capture: Capture, args: unknown[]): ServerResponse {
  const { response, send } = capture
  if (capture.head === undefined) {
    const [status, reason, given] = args
    const headers = snapshotHeaders(
      response,
      typeof reason === 'string' ? given : (given ?? reason),
    )
    Reflect.apply(send.writeHead, response, args)
    capture.head = { status: Number(status), headers }
    if (isEventStream(headers)) open(capture)
  } else Reflect.apply(send.writeHead, response, args)
  return response
}

function flushHeaders(capture: Capture): void {
  const { response, send } = capture
  if (capture.head === undefined) writeHead(capture, [response.statusCode])
  capture.wantsFlush = true
  if (capture.phase === 'flowing') send.flushHeaders()
}

function write(capture: Capture, args: unknown[]): boolean {
  const { response, send } = capture
  const { chunk, encoding, callback } = normalise(args)
  if (capture.isEnded) {
    if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
    return false
  }
  if (capture.phase === 'flowing' || !isContent(chunk))
    return Reflect.apply(send.write, response, args)
  if (capture.head === undefined) writeHead(capture, [response.statusCode])
  if (hasNoBody(capture)) {
    if (callback !== undefined) process.nextTick(callback)
    return true
  }
  // A handler may use its buffer again once it has been called back.
  keep(
    capture,
    typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk),
    callback,
  )
  if (isHeld(capture)) return true
  capture.wantsDrain = true
  return false
}

function end(capture: Capture, args: unknown[]): ServerResponse {
  const { response, send, observer } = capture
  const { chunk, encoding, callback } = normalise(args)
  if (capture.isEnded) {
    if (callback !== undefined) process.nextTick(callback, writeAfterEnd())
    return response
  }
  if (chunk && !isContent(chunk)) return Reflect.apply(send.end, response, args)
  if (capture.phase === 'flowing') {
    capture.isEnded = true
    void observer.flowed().then(() => Reflect.apply(send.end, response, args))
    return response
  }
  const octets = isContent(chunk) ? Buffer.from(chunk as string, encoding) : Buffer.alloc(0)
  if (capture.head === undefined) writeWholeHead(capture, octets.byteLength)
  capture.isEnded = true
  capture.endCallback = callback
  if (octets.byteLength > 0 && !hasNoBody(capture)) keep(capture, octets, undefined)
  if (isHeld(capture)) complete(capture)
  return response
}

/** The head of a response that comes in one piece: Node would add the length by itself at `end`. */
function writeWholeHead(capture: Capture, length: number): void {
  const { response } = capture
  const isFramed = ['content-length', 'transfer-encoding', 'trailer'].some((name) =>
    response.hasHeader(name),
  )
  if (!isFramed && !hasNoBody(capture)) response.setHeader('Content-Length', length)
  writeHead(capture, [response.statusCode])
}

function complete(capture: Capture): void {
  const { head, chunks, observer, send, endCallback } = capture
  if (head === undefined) return
  const body = Buffer.concat(chunks.map(({ octets }) => octets))
  capture.chunks = []
  void observer.complete({ ...head, body }).then(() => {
    if (body.byteLength > 0) send.end(body, endCallback)
    else send.end(endCallback)
  })
}

function open(capture: Capture): void {
  capture.phase = 'opening'
  void capture.observer.flow().then(() => release(capture))
}

/** Sends what has been kept; from here on everything passes. */
function release(capture: Capture): void {
  const { response, send, observer, chunks, endCallback } = capture
  capture.phase = 'flowing'
  capture.chunks = []
  let isDrained = true
  for (const { octets, callback } of chunks) isDrained = send.write(octets, callback)
  if (capture.wantsFlush) send.flushHeaders()
  if (capture.isEnded) void observer.flowed().then(() => send.end(endCallback))
  else if (capture.wantsDrain && isDrained) response.emit('drain')
}

function destroy(capture: Capture, error: Error | undefined): ServerResponse {
  const { response, send, observer } = capture
  if (!capture.isEnded && capture.phase === 'held') observer.cutOff()
  closed(capture)
  capture.isEnded = true
  send.destroy(error)
  return response
}

/** A caller that hangs up ends a response that flows; one that is held back may yet be completed. */
function closed(capture: Capture): void {
  if (capture.isEnded || capture.phase === 'held') return
  capture.isEnded = true
  if (capture.phase === 'flowing') void capture.observer.flowed()
}

function keep(capture: Capture, octets: Uint8Array, callback: Callback | undefined): void {
  capture.size += octets.byteLength
  if (capture.phase === 'held' && capture.size > capture.maxBytes) open(capture)
  const isLater = capture.phase === 'opening'
  capture.chunks.push({ octets, callback: isLater ? callback : undefined })
  if (!isLater && callback !== undefined) process.nextTick(callback)
}

const isHeld = ({ phase }: Capture): boolean => phase === 'held'

const hasNoBody = ({ head, isHead, response }: Capture): boolean => {
  const status = head?.status ?? response.statusCode
  return isHead || status === 204 || status === 304 || status < 200
}
