import { faultOf, wrongWiring } from '../../base/decision/service-auth-error.js'
import { type HeldAnswer, holdAnswer } from '../../idempotency/coupled/coupled-run.js'
import type { CoupledFinding, CoupledOutcome } from '../../idempotency/coupled/coupled-store.js'
import { refuse } from '../refusals.js'
import { answerRun, quietly } from './coupled-answer.js'
import type { CoupledSettings } from './idempotency-options.js'
import {
  type Attempt,
  answerUnsent,
  outcomeUnknown,
  replay,
  turnDown,
} from './idempotent-exchange.js'

/** How soon a running request may have ended. */
const RUNNING_RETRY_MS = 1000

/** Runs the handler inside a transaction of the store, and answers once that has ended. */
export async function runCoupled(attempt: Attempt, settings: CoupledSettings): Promise<void> {
  const { request, response, record: key, fingerprint } = attempt
  const { store, retentionMs } = settings
  let begun: Begun | undefined
  const asked = {
    key,
    fingerprint,
    retentionMs,
    requester: request,
    usedLate: () => tellUsedLate(attempt, begun),
  }
  try {
    const outcome = await store.run(asked, async (run) => {
      if (response.headersSent) {
        throw wrongWiring('the response had begun before the key was looked up')
      }
      const { maxBytes, storedHeaders } = settings
      const { fence } = run
      const onUnsent = (error: unknown): void =>
        answerUnsent(attempt, { error, status: response.statusCode, fence })
      const { key } = attempt
      const answer = holdAnswer({ run, key, response, maxBytes, storedHeaders, onUnsent })
      begun = { fence, answer }
      begin(attempt, settings, begun)
      return answer.ending
    })
    conclude(attempt, settings, { begun, outcome })
  } catch (error) {
    // A fault of ours: nothing is known of what the answer says.
    begun?.answer.discard()
    throw error
  }
}

interface Begun {
  readonly fence: number
  readonly answer: HeldAnswer
}

function begin(
  { state, request, next, tell }: Attempt,
  { store }: CoupledSettings,
  { fence, answer: { context } }: Begun,
): void {
  state.reservation = { context, store }
  request.idempotency = context
  tell({ outcome: 'accepted', reason: 'reserved', fence })
  next()
}

function tellUsedLate({ request, tell }: Attempt, begun: Begun | undefined): void {
  if (begun === undefined) return
  // The pattern of the route, because the URL may hold personal data.
  const path: unknown = request.route?.path
  const route = typeof path === 'string' ? `${request.method} ${path}` : undefined
  const { fence } = begun
  quietly(tell)({
    outcome: 'accepted',
    reason: 'transaction_used_late',
    fence,
    ...(route !== undefined && { route }),
  })
}

interface Concluded {
  readonly begun: Begun | undefined
  readonly outcome: CoupledOutcome
}

function conclude(
  attempt: Attempt,
  settings: CoupledSettings,
  { begun, outcome }: Concluded,
): void {
  if (begun === undefined) {
    if (isFinding(outcome)) answerKnown(attempt, settings, outcome)
    else unavailable(attempt, outcome)
    return
  }
  const answerFound = (found: CoupledFinding): void => {
    // The run has ended, so the request no longer has a reservation.
    attempt.state.reservation = undefined
    answerKnown(attempt, settings, found)
  }
  answerRun(attempt, { ...begun, outcome, answerFound })
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

function unavailable({ response, tell }: Attempt, outcome: CoupledOutcome): void {
  if (outcome.outcome !== 'undone') {
    throw new TypeError('store.run resolved to an outcome of a run, and there was none')
  }
  const { sqlState } = outcome
  const status = refuse(response, 'store_unavailable')
  tell({ outcome: 'undecided', reason: outcome.reason, status, ...(sqlState && { sqlState }) })
}

function answerKnown(
  attempt: Attempt,
  { tokenGate }: CoupledSettings,
  found: CoupledFinding,
): void {
  switch (found.outcome) {
    case 'running':
      turnDown(attempt, 'request_in_progress', RUNNING_RETRY_MS)
      return
    case 'mismatch':
      turnDown(attempt, 'key_reused')
      return
    case 'result_not_stored':
      turnDown(attempt, 'result_not_stored')
      return
    case 'unreadable':
      outcomeUnknown(attempt, 'unreadable')
      return
    case 'finished': {
      if (!found.usedToken) {
        replay(attempt, found.result)
        return
      }
      // The check that stands behind the key would be skipped by a replay.
      tokenGate(attempt.request, attempt.response, (error?: unknown) =>
        passGate(attempt, { result: found.result, error }),
      )
    }
  }
}

/** Never throws, because nothing would catch it. */
function passGate(
  attempt: Attempt,
  { result, error }: { readonly result: Uint8Array; readonly error: unknown },
): void {
  const { next } = attempt
  if (error !== undefined) {
    next(error)
    return
  }
  try {
    replay(attempt, result)
  } catch (fault) {
    // Something else (a timeout, say) has answered meanwhile.
    next(faultOf('requireIdempotencyKey', fault))
  }
}
