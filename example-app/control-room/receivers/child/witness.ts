import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Outcome, ReceiverName } from '../../protocol.js'
import type { Reporter } from './reporter.js'
import { type RequestContext, requestContext } from './request-context.js'

/** The header by which the room knows its calls again. */
const CALL_HEADER = 'x-room-call'
const CALL_FORM = /^[\w-]{1,64}$/

/** Runs the app in a context for each request, and reports how each has ended. */
export function witnessed(
  app: RequestListener,
  receiver: ReceiverName,
  reporter: Reporter,
): RequestListener {
  return (request, response) => {
    const beganAt = performance.now()
    const call = callOf(request)
    const context: RequestContext = { call, word: 'accepted', hasEnded: false }
    response.once('close', () => {
      context.hasEnded = true
      reporter.request({
        receiver,
        ...(call !== undefined && { call }),
        outcome: outcomeOf(response, context),
        milliseconds: performance.now() - beganAt,
      })
    })
    requestContext.run(context, () => app(request, response))
  }
}

function callOf({ headers }: IncomingMessage): string | undefined {
  const call = headers[CALL_HEADER]
  return typeof call === 'string' && CALL_FORM.test(call) ? call : undefined
}

function outcomeOf(response: ServerResponse, { word }: RequestContext): Outcome {
  if (!response.writableFinished) return 'failed'
  return word === 'accepted' && response.statusCode >= 500 ? 'failed' : word
}
