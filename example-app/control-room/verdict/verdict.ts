import type { DecisionEvent, IdempotencyEvent, RunEnd } from 'express-service-auth'
import type { CallAnswer, OperatorView, Outcome, RoomEvent, VerdictStep } from '../protocol.js'
import { detailOf, isOfKey, SENTENCES_ON_RUNS } from './details.js'
import { PASSED_BY, STEP_OF_KEY_REASON, STEP_OF_REASON, type Step, stepsOf } from './steps.js'

/** A call as its receiver has reported it. */
export interface JudgedCall {
  readonly method: 'GET' | 'POST'
  readonly answer: CallAnswer
  /** In the order in which they were published. */
  readonly events: readonly RoomEvent[]
  /** What the receiver says that the request came to; absent where it could not say so any more. */
  readonly outcome?: Outcome | undefined
}

type Verdict = DecisionEvent | IdempotencyEvent

/** Where the verdict has come to, and why it went no further. */
interface Progress {
  /** The last step that was passed. */
  readonly passed?: Step | undefined
  readonly failed?: Step
  readonly detail?: string
  readonly reason?: string
}

const FIRST_REFUSAL_STATUS = 400
const FIRST_FAULT_STATUS = 500

/** What whoever operates the receiver sees of a call. */
export function operatorView({ method, answer, events, outcome }: JudgedCall): OperatorView {
  const verdicts = events.filter(isVerdict).map(({ event }) => event as Verdict)
  const ending = verdicts.find((event) => event.outcome !== 'accepted')
  const progress = ending ? stoppedBy(ending) : progressOf(verdicts, { method, answer, outcome })
  // An accepted write of which the receiver has logged a warning, as that its result was not stored.
  const warning = events.find((event) => isVerdict(event) && event.level !== 'info')?.title
  const reason = progress.reason ?? warning
  return {
    outcome: outcome ?? outcomeOf(verdicts, answer),
    ...(reason !== undefined && { reason }),
    ...evidenceOf(ending, verdicts),
    steps: stepsOf(method).map(stateBy(stepsOf(method), progress)),
    events,
  }
}

const isVerdict = ({ channel }: RoomEvent): boolean =>
  channel === 'decision' || channel === 'idempotency'

function stoppedBy(event: Verdict): Progress {
  const detail = detailOf(event)
  return { failed: stepOf(event), detail, reason: (event as { reason: string }).reason }
}

/** The step at which an event has ended the request. */
function stepOf(event: Verdict): Step {
  if (event.outcome === 'accepted') throw new TypeError('it has ended nothing')
  if (isOfKey(event)) return STEP_OF_KEY_REASON[event.reason]
  // With a key id it was the payload: of an unverified token none is known.
  if (event.reason === 'token_malformed' && event.keyId !== undefined) return 'Claims'
  return STEP_OF_REASON[event.reason]
}

/** Of a call that no middleware has ended. */
function progressOf(
  verdicts: readonly Verdict[],
  { method, answer, outcome }: Omit<JudgedCall, 'events'>,
): Progress {
  const last = verdicts.at(-1)
  if (last === undefined) return {}
  const passed = PASSED_BY[last.by]
  if (verdicts.some((event) => 'reason' in event && event.reason === 'replayed')) return { passed }
  // An answer whose end was not reported may be the package's own: nobody knows how far it came.
  if ('status' in answer && outcome === undefined) return { passed }
  if ('status' in answer && answer.status < FIRST_FAULT_STATUS) return { passed: 'Handler' }
  const failed = after(passed, method)
  const end = verdicts.map(runEndOf).findLast((reason) => reason !== undefined)
  if (end === undefined) return { failed, detail: faultOf(answer) }
  return { failed, reason: end, detail: SENTENCES_ON_RUNS[end] }
}

function after(passed: Step, method: 'GET' | 'POST'): Step {
  const steps = stepsOf(method)
  return steps[steps.indexOf(passed) + 1] ?? 'Handler'
}

const faultOf = (answer: CallAnswer): string =>
  'failure' in answer
    ? `No answer came: ${answer.failure}.`
    : `The receiver has failed, and answered ${answer.status}.`

function runEndOf(event: Verdict): RunEnd | undefined {
  const isEnd =
    isOfKey(event) &&
    event.outcome === 'accepted' &&
    event.reason !== 'reserved' &&
    event.reason !== 'key_missing' &&
    event.reason !== 'replayed' &&
    event.reason !== 'transaction_used_late' &&
    event.reason !== 'answer_unsent'
  return isEnd ? event.reason : undefined
}

function outcomeOf(verdicts: readonly Verdict[], answer: CallAnswer): Outcome {
  const ending = verdicts.find((event) => event.outcome !== 'accepted')
  if (ending) return ending.outcome
  if ('failure' in answer || answer.status >= FIRST_FAULT_STATUS) return 'failed'
  const isReplay = verdicts.some((event) => 'reason' in event && event.reason === 'replayed')
  if (isReplay) return 'replayed'
  return answer.status >= FIRST_REFUSAL_STATUS ? 'refused' : 'accepted'
}

type Shown = 'claim' | 'permission' | 'keyId' | 'caller'

/** Of the event that ended the call; what that one does not say, of those before it. */
function evidenceOf(
  ending: Verdict | undefined,
  verdicts: readonly Verdict[],
): Partial<Record<Shown, string>> {
  const texts: Partial<Record<Shown, string>> = {}
  for (const event of [...verdicts, ...(ending ? [ending] : [])]) {
    const { claim, permission, keyId, caller } = event as Partial<Record<Shown, string>>
    Object.assign(texts, defined({ claim, permission, keyId, caller }))
  }
  return texts
}

function defined(members: Record<string, string | undefined>): Record<string, string> {
  const entries = Object.entries(members)
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => !!entry[1]))
}

function stateBy(steps: readonly Step[], { passed, failed, detail }: Progress) {
  const end = failed ?? passed
  const place = end === undefined ? -1 : steps.indexOf(end)
  return (name: Step, index: number): VerdictStep => {
    if (name === failed) return { name, state: 'failed', ...(detail && { detail }) }
    return { name, state: index <= place ? 'passed' : 'not-reached' }
  }
}
