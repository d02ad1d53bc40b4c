import type { Request, RequestHandler, Response } from 'express'

/** How a handler has ended. One that has answered, and called nothing, has no end: nothing follows. */
export type HandlerEnd =
  /** It has called `next()` once, and nothing else. */
  | { readonly type: 'passed' }
  /** It has called `next(error)`. */
  | { readonly type: 'failed'; readonly error: unknown }
  /** It has thrown, or its promise was rejected. */
  | { readonly type: 'thrown'; readonly error: unknown }
  /** In a way that is no pass, though Express might take it for one. `misuse` says what it did. */
  | { readonly type: 'misused'; readonly misuse: string }

export interface RequestAndResponse {
  readonly request: Request
  readonly response: Response
}

interface HandlerState {
  /** The arguments of its first call of `next`. */
  first: readonly unknown[] | undefined
  calls: number
  thrown: { readonly error: unknown } | undefined
}

/**
 * Runs one handler and resolves once with how it ended. Its `next` only notes that it was called: what
 * follows runs when the handler has returned and its promise, if any, has settled. So an error that is
 * thrown further down never comes back into a handler that calls `next` within its own `try`, and a
 * second call, or an answer, is seen before anything has passed.
 */
export function runHandler(
  handler: RequestHandler,
  { request, response }: RequestAndResponse,
  onEnd: (end: HandlerEnd) => void,
): void {
  const state: HandlerState = { first: undefined, calls: 0, thrown: undefined }
  let isRunning = true
  let hasEnded = false

  function endOnce(): void {
    if (hasEnded || (state.calls === 0 && state.thrown === undefined)) return
    hasEnded = true
    onEnd(endOf(state, response))
  }
  function settle(): void {
    isRunning = false
    endOnce()
  }
  function next(...args: unknown[]): void {
    state.calls += 1
    state.first ??= args
    // Later than whatever the handler does in the same turn of the event loop.
    if (!isRunning) setImmediate(endOnce)
  }
  function fail(error: unknown): void {
    state.thrown ??= { error }
    settle()
  }

  let returned: unknown
  try {
    returned = handler(request, response, next)
  } catch (error) {
    fail(error)
    return
  }
  if (returned === undefined) settle()
  else Promise.resolve(returned).then(settle, fail)
}

function endOf(
  { first = [], calls, thrown }: HandlerState,
  { headersSent, writableEnded }: Response,
): HandlerEnd {
  if (thrown !== undefined) {
    const { error } = thrown
    return isError(error) ? { type: 'thrown', error } : misused('has thrown what is no error')
  }
  if (calls > 1) return misused('has called next more than once')
  if (first.length === 0) {
    const hasAnswered = headersSent || writableEnded
    return hasAnswered ? misused('has called next() after an answer had begun') : { type: 'passed' }
  }
  const [error] = first
  return isError(error)
    ? { type: 'failed', error }
    : misused('has called next with what is no error')
}

/** Express treats anything else as no error, and continues here, or after the route or the router. */
const isError = (value: unknown): boolean =>
  Boolean(value) && value !== 'route' && value !== 'router'

const misused = (misuse: string): HandlerEnd => ({ type: 'misused', misuse })
