import type { Request, RequestHandler, Response } from 'express'

/** How a handler ended. A handler that answers and does not call `next` has no result, because nothing follows. */
export type HandlerResult =
  /** It called `next()` exactly once. */
  | { readonly type: 'passed' }
  /** It called `next(error)`. */
  | { readonly type: 'failed'; readonly error: unknown }
  /** It threw, or its promise rejected. */
  | { readonly type: 'thrown'; readonly error: unknown }
  /** It did something that Express might take for a pass; `misuse` says what. */
  | { readonly type: 'misused'; readonly misuse: string }

export interface RequestAndResponse {
  readonly request: Request
  readonly response: Response
}

interface HandlerState {
  /** The arguments of its first call of `next`. */
  firstArguments: readonly unknown[] | undefined
  calls: number
  thrown: { readonly error: unknown } | undefined
}

/**
 * Runs one handler and calls `onResult` once. The handler's `next` only records the call; `onResult` is called after
 * the handler has returned and its promise, if any, has settled. So a handler that calls `next` inside
 * `try` does not catch the errors of later handlers, and a second call of `next`, or an answer, is noticed
 * before the request passes.
 */
export function runHandler(
  handler: RequestHandler,
  { request, response }: RequestAndResponse,
  onResult: (result: HandlerResult) => void,
): void {
  const state: HandlerState = { firstArguments: undefined, calls: 0, thrown: undefined }
  let isRunning = true
  let hasEnded = false

  function endOnce(): void {
    if (hasEnded || (state.calls === 0 && state.thrown === undefined)) return
    hasEnded = true
    onResult(resultOf(state, response))
  }
  function settle(): void {
    isRunning = false
    endOnce()
  }
  function next(...args: unknown[]): void {
    state.calls += 1
    state.firstArguments ??= args
    // A handler that calls `next` late may do more in the same turn of the event loop: that counts, too.
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

function resultOf(
  { firstArguments = [], calls, thrown }: HandlerState,
  { headersSent, writableEnded }: Response,
): HandlerResult {
  if (thrown !== undefined) {
    const { error } = thrown
    return isError(error)
      ? { type: 'thrown', error }
      : misused('has thrown something other than an error')
  }
  if (calls > 1) return misused('has called next more than once')
  if (firstArguments.length === 0) {
    const hasAnswered = headersSent || writableEnded
    return hasAnswered ? misused('has called next() after an answer had begun') : { type: 'passed' }
  }
  const [error] = firstArguments
  return isError(error)
    ? { type: 'failed', error }
    : misused('has called next with something other than an error')
}

/** For any other value, Express continues without an error: here, or after the route or the router. */
const isError = (value: unknown): boolean =>
  Boolean(value) && value !== 'route' && value !== 'router'

const misused = (misuse: string): HandlerResult => ({ type: 'misused', misuse })
