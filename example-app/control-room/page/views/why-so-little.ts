import type { CallAnswer, CallOrder, CallResult } from '../../protocol.js'

/** Why the caller gets this answer, and no more. */
export function whySoLittle({ answer, operator }: CallResult, method: CallOrder['method']): string {
  if (!('status' in answer)) return answer.isSent ? NO_ANSWER[method] : NOT_SENT
  if (operator.outcome === 'replayed') return REPLAYED
  if (operator.reason === 'credentials_missing') return NO_TOKEN
  return WHY[answer.status] ?? (answer.status < 400 ? ACCEPTED : OF_THE_APP)
}

const ACCEPTED =
  'The token is genuine, its caller is approved and may do this: the caller gets the handler’s own answer.'

const REPLAYED =
  'The write has been done before: the caller gets the answer that was stored then, and the handler has not run again.'

const NO_TOKEN = 'The request came without a token, and is told only that it needs one.'

const NOT_SENT = 'The request did not arrive, so nothing has happened: its caller sends it again.'

const NO_ANSWER: Readonly<Record<CallOrder['method'], string>> = {
  GET: 'No answer came. A read changes nothing: its caller sends it again.',
  POST: 'No answer came. The write may or may not have happened: its caller sends it again with the same idempotency key, and it happens once.',
}

const OF_THE_APP = 'This is the app’s own answer: the package has let the call through.'

const WHY: Readonly<Record<number, string>> = {
  401: 'Every token that does not hold gets this one answer, to the byte, whichever check it failed: whoever forges tokens must not learn from it how far they came.',
  403: 'The token is genuine, but its caller may not do this. It is told that much and no more: not which permission is missing, nor whether the receiver knows it at all.',
  503: 'The receiver could not decide, so it did not let the call through. The caller may try again later; what is out of order inside is none of its business.',
  400: 'The caller is known and may do this, so it is told what to fix in its own request: the idempotency key.',
  409: 'The caller is known and may do this, so it is told how its earlier request with this key stands: sending it blindly again could write twice.',
  422: 'The caller is known and may do this, so it is told of its own mistake: one key stands for one request.',
}

/** The answer without its Date, the one line that differs from second to second. */
export const timeless = (answer: CallAnswer): string => answer.text.replace(/^date:.*\r?\n/im, '')
