import {
  ServiceAuthError,
  toServiceAuthError,
  wrongWiring,
} from '../../base/decision/service-auth-error.js'
import { type BufferedAnswer, bufferAnswer } from '../../idempotency/coupled/buffered-answer.js'
import type { CoupledFinding, CoupledOutcome } from '../../idempotency/coupled/coupled-store.js'
import { refuse } from '../refusal-table.js'
import { answerRun, ignoringErrors } from './coupled-answer.js'
import type { CoupledSettings } from './idempotency-options.js'
import {
  type IdempotentExchange,
  type RequestKey,
  refuseKey,
  refuseUnknownOutcome,
  replay,
  reportStoreFailure,
  reportUnsentAnswer,
} from './idempotent-exchange.js'

/** `Retry-After` for a key whose request is still running. */
const RUNNING_RETRY_MS = 1000

/**
 * Runs the handler inside a transaction of the store, and answers once that has ended. Without a `key` nothing is
 * looked up or stored.
 */
export async function runCoupled(
  exchange: IdempotentExchange,
  settings: CoupledSettings,
  key: RequestKey | undefined,
): Promise<void> {
  const { request, response } = exchange
  const { store, retentionMs } = settings
  let started: StartedRun | undefined
  const coupledRequest = {
    recordId: key?.recordId,
    fingerprint: key?.fingerprint ?? '',
    retentionMs,
    requester: request,
    onLateUse: () => emitLateUse(exchange, started),
  }
  try {
    const outcome = await store.run(coupledRequest, async (run) => {
      if (response.headersSent) {
        throw wrongWiring('the response had started before the key was looked up')
      }
      const { maxBytes, storedHeaders } = settings
      const { fence } = run
      const onUnsent = (error: unknown): void =>
        reportUnsentAnswer(exchange, { error, status: response.statusCode, fence })
      const answer = bufferAnswer({
        run,
        key: key?.key,
        response,
        maxBytes,
        storedHeaders,
        onUnsent,
      })
      started = { fence, answer }
      begin(exchange, settings, started)
      return answer.ending
    })
    answerRequest(exchange, settings, { started, outcome })
  } catch (error) {
    // The store or this package has failed. The handler's writes may not be committed, so its answer is discarded.
    started?.answer.discard()
    if (!(error instanceof ServiceAuthError)) reportStoreFailure(settings, exchange.state)
    throw error
  }
}

interface StartedRun {
  readonly fence: number
  readonly answer: BufferedAnswer
}

function begin(
  { state, request, next, emit }: IdempotentExchange,
  { store, dependency }: CoupledSettings,
  { fence, answer }: StartedRun,
): void {
  state.reservation = { store, release: answer.release }
  if (answer.context === undefined) {
    dependency.worked(state.admission.clock)
    emit({ outcome: 'accepted', reason: 'key_missing' })
  } else {
    request.idempotency = answer.context
    emit({ outcome: 'accepted', reason: 'reserved', fence })
  }
  next()
}

function emitLateUse({ request, emit }: IdempotentExchange, started: StartedRun | undefined): void {
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

interface AttemptEnd {
  readonly started: StartedRun | undefined
  readonly outcome: CoupledOutcome
}

function answerRequest(
  exchange: IdempotentExchange,
  settings: CoupledSettings,
  { started, outcome }: AttemptEnd,
): void {
  if (started === undefined) {
    if (isFinding(outcome)) answerFinding(exchange, settings, outcome)
    else unavailable(exchange, outcome)
    return
  }
  const answerOvertaken = (found: CoupledFinding): void => {
    // The run has ended, so the request no longer has a reservation.
    exchange.state.reservation = undefined
    answerFinding(exchange, settings, found)
  }
  answerRun(exchange, { ...started, outcome, answerOvertaken })
}

const FINDINGS: ReadonlySet<string> = new Set([
  'running',
  'mismatch',
  'finished',
  'result_not_stored',
  'unreadable',
] satisfies CoupledFinding['outcome'][])

const isFinding = (outcome: CoupledOutcome): outcome is CoupledFinding =>
  FINDINGS.has(outcome.outcome)

function unavailable({ response, emit }: IdempotentExchange, outcome: CoupledOutcome): void {
  if (outcome.outcome !== 'undone') {
    throw new TypeError(`store.run resolved to ${outcome.outcome} without calling \`work\``)
  }
  const { sqlState } = outcome
  const status = refuse(response, 'store_unavailable')
  emit({ outcome: 'undecided', reason: outcome.reason, status, ...(sqlState && { sqlState }) })
}

function answerFinding(
  exchange: IdempotentExchange,
  { tokenGate }: CoupledSettings,
  found: CoupledFinding,
): void {
  switch (found.outcome) {
    case 'running':
      refuseKey(exchange, 'request_in_progress', RUNNING_RETRY_MS)
      return
    case 'mismatch':
      refuseKey(exchange, 'key_reused')
      return
    case 'result_not_stored':
      refuseKey(exchange, 'result_not_stored')
      return
    case 'unreadable':
      refuseUnknownOutcome(exchange, 'unreadable')
      return
    case 'finished': {
      if (!found.usedToken) {
        replay(exchange, found.result)
        return
      }
      // A replay skips the handlers after this one, so the check of the single-use token runs here.
      tokenGate(exchange.request, exchange.response, (error?: unknown) =>
        replayAfterToken(exchange, { result: found.result, error }),
      )
    }
  }
}

/** Never throws, because nothing would catch it. */
function replayAfterToken(
  exchange: IdempotentExchange,
  { result, error }: { readonly result: Uint8Array; readonly error: unknown },
): void {
  const { next } = exchange
  if (error !== undefined) {
    next(error)
    return
  }
  try {
    replay(exchange, result)
  } catch (fault) {
    // Other code (such as a timeout) has answered in the meantime.
    next(toServiceAuthError('requireIdempotencyKey', fault))
  }
}
