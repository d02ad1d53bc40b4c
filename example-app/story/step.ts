import { isDeepStrictEqual } from 'node:util'
import type { Operator } from './operator.js'
import type { Stage } from './stage.js'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** How the step should go; what is not mentioned must not happen. */
export interface Expected {
  readonly status: number
  /** What the operator sees as the reason. */
  readonly reason?: string
  /** How many orders the step adds to the book. */
  readonly newOrders?: number
  /** How often the step makes receivers fetch the key set, where that is the point. */
  readonly keySetRequests?: number
  /** The title of the step whose stored answer comes again. */
  readonly replayOf?: string
  readonly retryAfter?: string
  /** Members of the JSON body. */
  readonly body?: Readonly<Record<string, unknown>>
}

export interface Step {
  readonly title: string
  readonly request: string
  /** What there is to be seen, in one sentence. */
  readonly about: string
  readonly expected: Expected
  send(): Promise<Answer>
}

export interface Outcome {
  readonly status: number | undefined
  readonly seen: string
  /** What differs from the expectation. */
  readonly faults: readonly string[]
}

/** Plays a step and compares what happened with what was expected. */
export async function play(
  step: Step,
  { stage, operator, answers }: { stage: Stage; operator: Operator; answers: Map<string, Answer> },
): Promise<Outcome> {
  const before = await stage.countOrders()
  operator.startLooking()
  try {
    const answer = await step.send()
    answers.set(step.title, answer)
    const happened = {
      newOrders: (await stage.countOrders()) - before,
      keySetRequests: operator.keySetRequests(),
      reason: operator.reason(),
    }
    const faults = [
      ...compareEffects(step.expected, happened),
      ...compareAnswer(step.expected, answer, answers),
    ]
    return { status: answer.status, seen: operator.summary(), faults }
  } catch (error) {
    return { status: undefined, seen: operator.summary(), faults: [`failed: ${error}`] }
  }
}

function compareEffects(
  expected: Expected,
  happened: { newOrders: number; keySetRequests: number; reason: string | undefined },
): string[] {
  const { newOrders = 0, keySetRequests = happened.keySetRequests } = expected
  return [
    ...difference('new orders', newOrders, happened.newOrders),
    ...difference('key set requests', keySetRequests, happened.keySetRequests),
    ...difference('reason', expected.reason, happened.reason),
  ]
}

function compareAnswer(
  expected: Expected,
  answer: Answer,
  answers: ReadonlyMap<string, Answer>,
): string[] {
  const { replayOf, retryAfter = null } = expected
  const original = replayOf === undefined ? answer : answers.get(replayOf)
  const replayed = replayOf === undefined ? null : 'true'
  const body = expected.body ? (JSON.parse(answer.text) as Record<string, unknown>) : {}
  return [
    ...difference('status', expected.status, answer.status),
    ...difference('Idempotent-Replayed', replayed, answer.headers.get('idempotent-replayed')),
    ...difference('Retry-After', retryAfter, answer.headers.get('retry-after')),
    ...difference('replayed body', original?.text, answer.text),
    ...Object.entries(expected.body ?? {}).flatMap(([name, value]) =>
      difference(name, value, body[name]),
    ),
  ]
}

function difference(what: string, expected: unknown, happened: unknown): string[] {
  if (isDeepStrictEqual(expected, happened)) return []
  return [`${what}: expected ${expected ?? 'none'}, was ${happened ?? 'none'}`]
}
