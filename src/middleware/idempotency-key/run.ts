import { randomUUID } from 'node:crypto'
import { ServiceAuthError, wrongWiring } from '../../base/decision/service-auth-error.js'
import { SignalOf } from '../../base/lazy-signal.js'
import { bufferResponse } from '../../idempotency/buffered-response/buffer-response.js'
import { encodeResult } from '../../idempotency/buffered-response/stored-result.js'
import type { HandlerEnding, HandlerRun, RunOutcome } from '../../idempotency/run.js'
import type { TokenUse } from '../../idempotency/single-use.js'
import { refuse } from '../refusal-table.js'
import {
  answerFinding,
  type IdempotentContext,
  type RequestKey,
  reportUnsentAnswer,
  useToken,
} from './answer.js'
import type { IdempotencySettings } from './idempotency-options.js'

interface Keyed {
  /** `undefined`: the handler runs without a key. */
  readonly key: RequestKey | undefined
  /** `undefined`: the token may be used again. */
  readonly token: TokenUse | undefined
}

/**
 * Runs the handler of a request once for its key, or answers from the record of another run. The store reserves the
 * key and begins the run; the handler's answer is buffered; the store settles the run; then the answer is sent. A
 * leased store settles a run by storing the answer, and a coupled store by a COMMIT of answer and writes together.
 */
export async function run(
  context: IdempotentContext,
  settings: IdempotencySettings,
  { key, token }: Keyed,
): Promise<void> {
  const { request, next } = context
  if (!settings.isCoupled) {
    // A coupled store uses the token up in the transaction of the run.
    if (!(await useToken(context, settings, token))) return
    if (key === undefined) {
      runUnprotected(context)
      return
    }
  }
  let answer: BufferedAnswer | undefined
  let fault: { readonly error: unknown } | undefined
  const runRequest = {
    recordId: key?.recordId ?? randomUUID(),
    fingerprint: key?.fingerprint ?? '',
    hasKey: key !== undefined,
    retentionMs: settings.retentionMs,
    token,
    requester: request,
    onLateUse: () => emitLateUse(context, answer),
  }
  try {
    const outcome = await settings.runOnce(runRequest, async (handlerRun) => {
      try {
        answer = bufferAnswer(context, settings, { run: handlerRun, key })
      } catch (error) {
        // The handler has not begun.
        fault = { error }
        return { type: 'released' }
      }
      next()
      return answer.ending
    })
    if (fault !== undefined) throw fault.error
    await conclude(context, settings, { answer, outcome, token })
  } catch (error) {
    // The store or this package has failed. Writes may not be committed, so the handler's answer is discarded.
    answer?.discard()
    if (!(error instanceof ServiceAuthError)) settings.reportFailure()
    throw error
  }
}

/** Runs the handler and stores nothing. The reservation makes guards fail that must come before this middleware. */
function runUnprotected({ state, next, emit }: IdempotentContext): void {
  state.reservation = { release() {} }
  emit({ outcome: 'accepted', reason: 'key_missing' })
  next()
}

/** A handler's answer, buffered until its run is settled. */
type BufferedAnswer = ReturnType<typeof bufferAnswer>

/**
 * Shows the handler its run, makes guards fail that come after this middleware, and buffers the response.
 *
 * @throws ServiceAuthError if a response has begun already.
 */
function bufferAnswer(
  context: IdempotentContext,
  { maxBytes, storedHeaders }: IdempotencySettings,
  { run, key }: { readonly run: HandlerRun; readonly key: RequestKey | undefined },
) {
  const { state, request, response, emit } = context
  if (response.headersSent) {
    // Other code (such as a timeout) has answered in the meantime.
    throw wrongWiring('the response had begun before the key was reserved')
  }
  const { fence, answered } = run
  let isReleased = false
  const release = (): void => {
    isReleased = true
  }
  state.reservation = { release }
  if (key !== undefined) {
    request.idempotency = Object.assign(new SignalOf(run), { key: key.key, fence, release })
  }
  let resolveEnding: (ending: HandlerEnding) => void
  const ending = new Promise<HandlerEnding>((resolve) => {
    resolveEnding = resolve
  })
  let allowSending: (() => void) | undefined

  /** Ends the handler's part of the run. The response waits for the promise, until `send` is called. */
  function end(handlerEnding: HandlerEnding): Promise<void> {
    answered()
    if (handlerEnding.type === 'answered') answer.status = handlerEnding.status
    const isAllowed = new Promise<void>((resolve) => {
      allowSending = resolve
    })
    resolveEnding(isReleased ? { type: 'released' } : handlerEnding)
    return isAllowed
  }

  const isHead = response.req.method === 'HEAD'
  const buffered = bufferResponse(
    { response, isHead, maxBytes, storedHeaders },
    {
      onComplete(result) {
        const isKept = key !== undefined && !isReleased
        const encoded = isKept ? encodeResult(result) : undefined
        return end({ type: 'answered', status: result.status, result: encoded })
      },
      onStream: () => end({ type: 'answered', status: response.statusCode, result: undefined }),
      onAbort() {
        void end({ type: 'aborted' })
      },
      onSendError: (error) =>
        reportUnsentAnswer(context, { error, status: response.statusCode, fence }),
    },
  )
  const answer = {
    fence,
    /** Resolves once the handler has answered, or can no longer answer. */
    ending,
    /** The status of the answer; `undefined` while there is none. */
    status: undefined as number | undefined,
    /** Lets the answer be sent, once the handler has answered. */
    send: () => allowSending?.(),
    /** Discards the answer. Returns `false` if a byte of it has been sent, or the client has disconnected. */
    discard: buffered.discard,
  }
  if (key === undefined) emit({ outcome: 'accepted', reason: 'key_missing' })
  else emit({ outcome: 'accepted', reason: 'reserved', fence })
  return answer
}

function emitLateUse(
  { request, emit }: IdempotentContext,
  answer: BufferedAnswer | undefined,
): void {
  if (answer === undefined) return
  const { fence } = answer
  // The pattern of the route, because the URL may hold personal data.
  const path: unknown = request.route?.path
  const route = typeof path === 'string' ? { route: `${request.method} ${path}` } : {}
  emit({ outcome: 'accepted', reason: 'transaction_used_late', fence, ...route })
}

interface EndedRequest {
  /** `undefined`: the handler has not run. */
  readonly answer: BufferedAnswer | undefined
  readonly outcome: RunOutcome
  readonly token: TokenUse | undefined
}

/** Sends the handler's answer; or that of another run, a refusal or an error instead. */
async function conclude(
  context: IdempotentContext,
  settings: IdempotencySettings,
  { answer, outcome, token }: EndedRequest,
): Promise<void> {
  const { response, next, emit, state } = context
  const fence = answer && { fence: answer.fence }
  switch (outcome.outcome) {
    case 'answered':
      sendAnswer(context, begun(answer), outcome)
      return
    case 'overtaken':
      emit({ outcome: 'accepted', reason: 'conflict', fence: begun(answer).fence })
      if (!begun(answer).discard()) return
      // The run has ended, so the request no longer has a reservation.
      state.reservation = undefined
      await answerFinding(context, settings, { found: outcome.by, token })
      return
    case 'undone': {
      const { reason, sqlState, retryAfterSeconds } = outcome
      if (answer === undefined || answer.discard())
        refuse(response, 'store_unavailable', retryAfterSeconds)
      emit({ outcome: 'undecided', reason, status: 503, ...(sqlState && { sqlState }), ...fence })
      return
    }
    case 'commit_refused': {
      const { outcome: reason, cause, sqlState } = outcome
      const { fence, discard } = begun(answer)
      emit({ outcome: 'undecided', reason, ...(sqlState && { sqlState }), fence })
      const message = 'the database has refused to commit what the handler had written'
      if (discard()) next(new ServiceAuthError(reason, message, { cause }))
      return
    }
    default:
      await answerFinding(context, settings, { found: outcome, token })
  }
}

/** @throws TypeError if there is no run. */
function begun(answer: BufferedAnswer | undefined): BufferedAnswer {
  if (answer !== undefined) return answer
  throw new TypeError('run of the store must call `work` before a run has ended')
}

function sendAnswer(
  { emit }: IdempotentContext,
  { fence, status, send }: BufferedAnswer,
  { end, isTransactionUnused }: RunOutcome & { readonly outcome: 'answered' },
): void {
  send()
  const facts = { fence, ...(status !== undefined && { status }) }
  if (end !== undefined) emit({ outcome: 'accepted', reason: end, ...facts })
  if (isTransactionUnused) emit({ outcome: 'accepted', reason: 'transaction_unused', ...facts })
}
