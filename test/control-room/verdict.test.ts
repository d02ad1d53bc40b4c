import type { DecisionEvent, IdempotencyEvent } from 'express-service-auth'
import { expect, it } from 'vitest'
import type { CallAnswer, Outcome, RoomEvent } from '../../example-app/control-room/protocol.js'
import { levelOf } from '../../example-app/control-room/receivers/child/levels.js'
import { operatorView } from '../../example-app/control-room/verdict/verdict.js'

const CUT: CallAnswer = {
  failure: 'the connection was cut before an answer came',
  text: '',
  milliseconds: 3,
  isSent: true,
}
const answered = (status: number): CallAnswer => ({ status, text: '', bytes: 0, milliseconds: 3 })

const known = { caller: 'billing', keyId: 'd-1' }
const accepted = (by: DecisionEvent['by']): DecisionEvent => ({ outcome: 'accepted', by, ...known })
const ADMITTED = [
  accepted('serviceAuth'),
  accepted('requirePermissions'),
  accepted('requireSingleUse'),
]
const ofKey = (reason: 'reserved' | 'result_lost' | 'abandoned' | 'result_kept') =>
  ({
    outcome: 'accepted',
    by: 'requireIdempotencyKey',
    reason,
    fence: 1,
    caller: 'billing',
  }) as IdempotencyEvent

function view(
  answer: CallAnswer,
  verdicts: readonly (DecisionEvent | IdempotencyEvent)[],
  told?: Outcome,
) {
  const events = verdicts.map(
    (event, number): RoomEvent => ({
      number,
      at: 0,
      receiver: 'orders-1',
      channel: event.by === 'requireIdempotencyKey' ? 'idempotency' : 'decision',
      level: levelOf(event),
      title: 'reason' in event ? event.reason : event.outcome,
      event,
    }),
  )
  const judged = { method: 'POST', answer, events, outcome: told } as const
  const { steps, outcome, reason } = operatorView(judged)
  const failed = steps.find(({ state }) => state === 'failed')
  const passed = steps.filter(({ state }) => state === 'passed').length
  return { outcome, reason, passed, failed: failed?.name, detail: failed?.detail }
}

it('reaches the handler of a receiver that was killed in the middle', () => {
  expect(view(CUT, [...ADMITTED, ofKey('reserved')])).toEqual({
    outcome: 'failed',
    passed: 14,
    failed: 'Handler',
    detail: 'No answer came: the connection was cut before an answer came.',
  })
})

it('stops where a receiver was killed before that', () => {
  const seen = view(CUT, ADMITTED.slice(0, 2))
  expect(seen).toMatchObject({ failed: 'Token used once', passed: 12 })
})

it('says what became of a run that has left no answer', () => {
  const seen = view(CUT, [...ADMITTED, ofKey('reserved'), ofKey('abandoned')])
  expect(seen).toMatchObject({
    outcome: 'failed',
    reason: 'abandoned',
    failed: 'Handler',
    detail: 'The handler ended without an answer: nobody knows what it has done.',
  })
})

it('takes an answer of the handler for one, and says that the store has lost it', () => {
  for (const end of ['result_kept', 'result_lost'] as const) {
    const seen = view(answered(201), [...ADMITTED, ofKey('reserved'), ofKey(end)], 'accepted')
    expect(seen).toEqual({
      outcome: 'accepted',
      reason: end === 'result_lost' ? end : undefined,
      passed: 15,
      failed: undefined,
      detail: undefined,
    })
  }
})

it('finds a handler that has failed', () => {
  const seen = view(answered(500), [...ADMITTED, ofKey('reserved'), ofKey('result_kept')], 'failed')
  expect(seen).toMatchObject({ outcome: 'failed', failed: 'Handler' })
})

it('reaches no step where nothing was told', () => {
  expect(view(CUT, [])).toMatchObject({ outcome: 'failed', passed: 0, failed: undefined })
})

it('claims no more than was told of a call whose end its receiver did not tell in time', () => {
  expect(view(answered(401), [])).toMatchObject({ outcome: 'refused', passed: 0 })
  expect(view(answered(503), [])).toMatchObject({ outcome: 'failed', passed: 0 })
  const begun = ADMITTED.slice(0, 1)
  expect(view(answered(403), begun)).toMatchObject({
    outcome: 'refused',
    passed: 11,
    failed: undefined,
  })
  expect(view(answered(403), begun, 'accepted')).toMatchObject({ passed: 15 })
})
