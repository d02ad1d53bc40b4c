import { ServiceAuthError, wrongWiring } from '../../base/decision/service-auth-error.js'
import { type BufferedAnswer, bufferAnswer } from '../../idempotency/coupled/buffered-answer.js'
import type { CoupledFinding, CoupledOutcome } from '../../idempotency/coupled/coupled-store.js'
import type { TokenUse } from '../../idempotency/single-use.js'
import { refuse } from '../refusal-table.js'
import { tokenReplayed } from '../require-single-use.js'
import type { CoupledSettings } from './idempotency-options.js'
import {
  answerExisting,
  type Emit,
  type IdempotentContext,
  type RequestKey,
  refuseToken,
  reportStoreFailure,
  reportUnsentAnswer,
  useToken,
} from './idempotent-context.js'

/**
 * Runs the handler inside a transaction of the store, and answers once the transaction has ended. Without a `key`
 * nothing is looked up or stored.
 */
export async function runCoupled(
  context: IdempotentContext,
  settings: CoupledSettings,
  { key, token }: { readonly key: RequestKey | undefined; readonly token: TokenUse | undefined },
): Promise<void> {
  const { request, response } = context
  const { store, retentionMs } = settings
  let started: StartedRun | undefined
  const coupledRequest = {
    recordId: key?.recordId,
    fingerprint: key?.fingerprint ?? '',
    retentionMs,
    token,
    requester: request,
    onLateUse: () => emitLateUse(context, started),
  }
  try {
    const outcome = await store.run(coupledRequest, async (run) => {
      if (response.headersSent) {
        throw wrongWiring('the response had started before the key was looked up')
      }
      const { maxBytes, storedHeaders } = settings
      const { fence } = run
      const onUnsent = (error: unknown): void =>
        reportUnsentAnswer(context, { error, status: response.statusCode, fence })
      const answer = bufferAnswer({
        run,
        key: key?.key,
        response,
        maxBytes,
        storedHeaders,
        onUnsent,
      })
      started = { fence, answer }
      begin(context, started)
      return answer.ending
    })
    await answerRequest(context, settings, { started, outcome, token })
  } catch (error) {
    // The store or this package has failed. The handler's writes may not be committed, so its answer is discarded.
    started?.answer.discard()
    if (!(error instanceof ServiceAuthError)) reportStoreFailure(settings)
    throw error
  }
}

/** Exists once the store has begun a run, and not if it only answers from a record. */
interface StartedRun {
  readonly fence: number
  readonly answer: BufferedAnswer
}

function begin(
  { state, request, next, emit }: IdempotentContext,
  { fence, answer }: StartedRun,
): void {
  state.reservation = { release: answer.release }
  if (answer.idempotency === undefined) {
    emit({ outcome: 'accepted', reason: 'key_missing' })
  } else {
    request.idempotency = answer.idempotency
    emit({ outcome: 'accepted', reason: 'reserved', fence })
  }
  next()
}

function emitLateUse({ request, emit }: IdempotentContext, started: StartedRun | undefined): void {
  if (started === undefined) return
  // The pattern of the route, because the URL may hold personal data.
  const path: unknown = request.route?.path
  const route = typeof path === 'string' ? `${request.method} ${path}` : undefined
  const { fence } = started
  ignoringErrors(emit)({
    outcome: 'accepted',
    reason: 'transaction_used_late',
    fence,
    ...(route !== undefined && { route }),
  })
}

interface EndedRequest {
  readonly started: StartedRun | undefined
  readonly token: TokenUse | undefined
  readonly outcome: CoupledOutcome
}

async function answerRequest(
  context: IdempotentContext,
  settings: CoupledSettings,
  { started, outcome, token }: EndedRequest,
): Promise<void> {
  if (started !== undefined) {
    await answerRun(context, settings, { ...started, outcome, token })
    return
  }
  switch (outcome.outcome) {
    case 'running':
    case 'mismatch':
    case 'finished':
    case 'result_not_stored':
    case 'unreadable':
    case 'token_used':
      await answerFinding(context, settings, { found: outcome, token })
      return
    case 'undone': {
      const { reason, sqlState, retryAfterSeconds } = outcome
      const status = refuse(context.response, 'store_unavailable', retryAfterSeconds)
      context.emit({ outcome: 'undecided', reason, status, ...(sqlState && { sqlState }) })
      return
    }
    default:
      throw new TypeError(`store.run resolved to ${outcome.outcome} without calling \`work\``)
  }
}

/** Answers from the record of another run of the key, or because one is in progress. */
async function answerFinding(
  context: IdempotentContext,
  settings: CoupledSettings,
  { found, token }: { readonly found: CoupledFinding; readonly token: TokenUse | undefined },
): Promise<void> {
  if (found.outcome === 'token_used') {
    refuseToken(context, tokenReplayed(context.state.admission))
    return
  }
  // The transaction of another run did not use up the token of this request.
  if (found.outcome === 'finished' && !(await useToken(context, settings, token))) return
  answerExisting(context, found)
}

/** Sends the handler's answer, or a refusal or an error instead. */
async function answerRun(
  context: IdempotentContext,
  settings: CoupledSettings,
  { fence, answer, outcome, token }: StartedRun & Omit<EndedRequest, 'started'>,
): Promise<void> {
  const { response, next } = context
  const emit = ignoringErrors(context.emit)
  const status = answer.status === undefined ? {} : { status: answer.status }
  const accepted = { outcome: 'accepted', fence, ...status } as const
  switch (outcome.outcome) {
    case 'committed':
      answer.send()
      if (answer.idempotency !== undefined) {
        emit({ ...accepted, reason: answer.isStorable ? 'result_kept' : 'result_too_large' })
      }
      if (!outcome.usedTransaction && (answer.status ?? 0) < 400) {
        emit({ ...accepted, reason: 'transaction_unused' })
      }
      return
    case 'refusal_kept':
      answer.send()
      emit({ ...accepted, reason: 'refusal_kept' })
      return
    case 'refusal_lost':
      answer.send()
      emit({ ...accepted, reason: outcome.to === 'overtaken' ? 'conflict' : 'result_lost' })
      return
    case 'rolled_back':
      answer.send()
      emit({ ...accepted, reason: answer.isReleased ? 'released' : 'rolled_back' })
      return
    case 'uncoupled':
      answer.send()
      emit({ ...accepted, reason: 'uncoupled' })
      return
    case 'overtaken':
      emit({ outcome: 'accepted', reason: 'conflict', fence })
      if (answer.discard()) {
        // The run has ended, so the request no longer has a reservation.
        context.state.reservation = undefined
        await answerFinding(context, settings, { found: outcome.by, token })
      }
      return
    case 'undone': {
      const { reason, sqlState } = outcome
      emit({ outcome: 'undecided', reason, status: 503, ...(sqlState && { sqlState }), fence })
      if (answer.discard()) {
        refuse(response, 'store_unavailable', outcome.retryAfterSeconds)
      }
      return
    }
    case 'commit_refused': {
      const { cause, sqlState } = outcome
      emit({ outcome: 'undecided', reason: 'commit_refused', ...(sqlState && { sqlState }), fence })
      const message = 'the database has refused to commit what the handler had written'
      if (answer.discard()) next(new ServiceAuthError('commit_refused', message, { cause }))
      return
    }
    default:
      throw new TypeError(`store.run resolved to ${outcome.outcome} although it called \`work\``)
  }
}

/** Building an event reads the app's request, which may throw. By now the outcome is fixed, so the error is ignored. */
function ignoringErrors(emit: Emit): Emit {
  return (event) => {
    try {
      emit(event)
    } catch {
      // The answer is sent anyway.
    }
  }
}
