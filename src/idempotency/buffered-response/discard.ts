import type { ClientRequest, ServerResponse } from 'node:http'

const NAMES = [
  'setHeader',
  'setHeaders',
  'appendHeader',
  'removeHeader',
  'writeHead',
  'flushHeaders',
  'write',
  'end',
  'destroy',
] as const
type Name = (typeof NAMES)[number]

/** The functions by which a response is built and sent. */
export type ResponseFunctions = Readonly<Record<Name, (...args: unknown[]) => unknown>>

/** The callback of a `write` or an `end`. */
export type Callback = (error?: Error | null) => void

/** A response before it was buffered. */
export interface InitialState {
  readonly headers: readonly (readonly [name: string, value: number | string | string[]])[]
  readonly on: ServerResponse['on']
  /** `sendDate` is one of them, because Node changes it when the header `Date` is removed. */
  readonly fields: Pick<ServerResponse, 'statusCode' | 'statusMessage' | 'sendDate'>
}

/** Returns what `restore` restores. */
export function takeSnapshot(response: ServerResponse): InitialState {
  const { statusCode, statusMessage, sendDate, on } = response
  // The types of `ServerResponse` omit `getRawHeaderNames`.
  const named = response as ServerResponse & Pick<ClientRequest, 'getRawHeaderNames'>
  const headers = named.getRawHeaderNames().map((name) => {
    const value = response.getHeader(name) ?? ''
    // Copied, because Node appends to it.
    return [name, Array.isArray(value) ? [...value] : value] as const
  })
  return { headers, on, fields: { statusCode, statusMessage, sendDate } }
}

/** Restores a response by its original functions. */
export function restore(
  response: ServerResponse,
  { removeHeader, setHeader }: ResponseFunctions,
  { headers, on, fields }: InitialState,
): void {
  // Removes all headers, to restore their order.
  for (const name of response.getHeaderNames()) removeHeader.call(response, name)
  for (const header of headers) setHeader.apply(response, [...header])
  Object.assign(response, fields)
  if (response.on !== on) response.on = on
  // Otherwise a later answer without trailers would send the trailers of the discarded answer.
  response.addTrailers({})
}

/**
 * Replaces the functions of a response whose buffered answer was discarded. Calls of the app go to the original
 * functions, until it has answered. Calls of the handler are ignored: it does not know that its answer was discarded,
 * and an error that Node throws or emits for it could end the process. A handler that had not ended its answer
 * (`isHandlerWriting`) may still write its body: until the app changes the head, it is the handler that writes.
 */
export function answerByApp(
  response: ServerResponse,
  originals: ResponseFunctions,
  isHandlerWriting: boolean,
): void {
  const { statusCode, statusMessage } = response
  let isHandler = isHandlerWriting

  function isIgnored(name: Name): boolean {
    if (response.finished) return true
    const isBody = name === 'write' || name === 'end' || name === 'flushHeaders'
    const isHeadChanged =
      response.statusCode !== statusCode || response.statusMessage !== statusMessage
    if (!isBody || isHeadChanged) isHandler = false
    const isFromHandler = isHandler
    if (name === 'end') isHandler = false
    return isFromHandler
  }

  const replacement =
    (name: Name) =>
    (...args: unknown[]): unknown => {
      if (name === 'destroy' || !isIgnored(name)) return originals[name].apply(response, args)
      const wasWritten = rejectWrite(args)
      return name === 'write' ? wasWritten : response
    }
  Object.assign(response, Object.fromEntries(NAMES.map((name) => [name, replacement(name)])))
}

/** Ignores a `write` or an `end`, but for its callbacks. */
export function rejectWrite(args: readonly unknown[]): false {
  for (const callback of args.filter((arg) => typeof arg === 'function')) {
    const error = Object.assign(new Error('write after end'), {
      code: 'ERR_STREAM_WRITE_AFTER_END',
    })
    process.nextTick(callback as Callback, error)
  }
  return false
}
