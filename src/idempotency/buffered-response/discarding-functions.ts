import type { ServerResponse } from 'node:http'
import { isHeadSent } from './head.js'
import { type Callback, callOriginal, type ResponseFunctions } from './original-functions.js'
import {
  isContent,
  parseWriteArguments,
  rejectLateWrite,
  writeDiscarded,
} from './replacement-functions.js'
import type { BufferedResponse } from './send-once-stored.js'
import { isBodyless } from './stored-result.js'

/*
 * The functions of a response whose buffered answer was discarded. Calls of the app go to the original
 * functions, until it has answered. Calls of the handler are ignored: it does not know that its answer was
 * discarded, and an error that Node throws or emits for it could end the process. A handler that had not
 * ended its answer may still write its body.
 */

type Replacement = (buffered: BufferedResponse, args: unknown[]) => unknown

/**
 * Changes the head until the app has answered. The handler has already written its head, so this call and later
 * writes come from the app.
 */
const untilAnswered =
  (name: keyof ResponseFunctions) =>
  (buffered: BufferedResponse, args: unknown[]): unknown => {
    if (buffered.response.finished) return buffered.response
    buffered.isHandlerWriting = false
    return callOriginal(buffered, name, args)
  }

/** Whether the handler continues its discarded answer: the app has not changed the head. */
function isFromHandler({ isHandlerWriting, initialState, response }: BufferedResponse): boolean {
  return (
    isHandlerWriting &&
    response.statusCode === initialState?.fields.statusCode &&
    response.statusMessage === initialState.fields.statusMessage
  )
}

function ignoreWrite(callback: Callback | undefined): false {
  if (callback !== undefined) process.nextTick(callback, writeDiscarded())
  return false
}

export const setHeader: Replacement = untilAnswered('setHeader')
export const setHeaders: Replacement = untilAnswered('setHeaders')
export const appendHeader: Replacement = untilAnswered('appendHeader')
export const removeHeader: Replacement = untilAnswered('removeHeader')
export const writeHead: Replacement = untilAnswered('writeHead')

export function flushHeaders(buffered: BufferedResponse, args: unknown[]): unknown {
  if (buffered.response.finished || isFromHandler(buffered)) return undefined
  return callOriginal(buffered, 'flushHeaders', args)
}

export const destroy = (buffered: BufferedResponse, args: unknown[]): unknown =>
  callOriginal(buffered, 'destroy', args)

export function write(buffered: BufferedResponse, args: unknown[]): unknown {
  if (buffered.response.finished) return rejectLateWrite(parseWriteArguments(args).callback)
  if (isFromHandler(buffered)) return ignoreWrite(parseWriteArguments(args).callback)
  return callOriginal(buffered, 'write', args)
}

const FRAMING = ['content-length', 'transfer-encoding', 'trailer']

function setContentLength({ response, isHead }: BufferedResponse, length: number): void {
  if (isHead || isBodyless(response.statusCode)) return
  if (FRAMING.some((name) => response.hasHeader(name))) return
  response.setHeader('Content-Length', length)
}

export function end(buffered: BufferedResponse, args: unknown[]): ServerResponse {
  const { response, deferredDestroys } = buffered
  const { chunk, encoding, callback } = parseWriteArguments(args)
  if (response.finished) {
    rejectLateWrite(callback)
    return response
  }
  if (isFromHandler(buffered)) {
    buffered.isHandlerWriting = false
    ignoreWrite(callback)
    return response
  }
  // Node adds no `Content-Length` once a header with a length was removed.
  if (!isHeadSent(response) && (!chunk || isContent(chunk))) {
    const length = isContent(chunk) ? Buffer.byteLength(chunk, encoding) : 0
    setContentLength(buffered, length)
  }
  callOriginal(buffered, 'end', args)
  // The handler wanted to end the connection after its answer. Doing so before the app's answer would
  // leave the client without one.
  for (const destroy of deferredDestroys.splice(0)) destroy()
  return response
}
