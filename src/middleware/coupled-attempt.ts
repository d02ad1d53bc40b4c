import { type HeldAnswer, holdAnswer } from '../coupled/run.js'
import type { CoupledFinding, CoupledOutcome, CoupledRun } from '../coupled/store.js'
import { wrongWiring } from '../decision/fault.js'
import { type Attempt, outcomeUnknown, replay, turnDown } from './attempt.js'
import { answerRun } from './coupled-answer.js'
import type { CoupledSettings } from './idempotency-options.js'
import { refuse } from './refusals.js'

/** How soon a running request may have ended. */
const RUNNING_RETRY_MS = 1000

/** Runs the handler inside a transaction of the store, and answers once that has ended. */
export async function runCoupled(attempt: Attempt, settings: CoupledSettings): Promise<void> {
  const { request, response, record: key, fingerprint } = attempt
  const { store, retentionMs } = settings
  let begun: { readonly fence: number; readonly answer: HeldAnswer } | undefined
  const asked = { key, fingerprint, retentionMs, requester: request }
  let outcome: CoupledOutcome
  try {
    outcome = await store.run(asked, async (run) => {
      if (response.headersSent) {
        throw wrongWiring('the response had begun before the key was looked up')
      }
      const answer = begin(attempt, settings, run)
      begun = { fence: run.fence, answer }
      return answer.ending
    })
  } catch (error) {
    // A fault of ours: nothing is known of what the answer says.
    begun?.answer.discard()
    throw error
  }
  const answerFound = (found: CoupledFinding): void => answerKnown(attempt, settings, found)
  if (begun !== undefined) answerRun(attempt, { ...begun, outcome, answerFound })
  else if (isFinding(outcome)) answerFound(outcome)
  else unavailable(attempt, outcome)
}

function begin(
  { state, request, response, next, key, tell }: Attempt,
  { maxBytes, storedHeaders, store }: CoupledSettings,
  run: CoupledRun,
): HeldAnswer {
  const answer = holdAnswer({ run, key, response, maxBytes, storedHeaders })
  state.reservation = { context: answer.context, store }
  request.idempotency = answer.context
  tell({ outcome: 'accepted', reason: 'reserved', fence: run.fence })
  next()
  return answer
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
      const { request, response, next } = attempt
      // The check that stands behind the key would be skipped by a replay.
      tokenGate(request, response, (error?: unknown) =>
        error === undefined ? replay(attempt, found.result) : next(error),
      )
    }
  }
}
