import { beforeEach, expect, it } from 'vitest'
import type { Operator } from '../../example-app/story/operator.js'
import type { Stage } from '../../example-app/story/stage.js'
import { type Answer, type Expected, play } from '../../example-app/story/step.js'

const STORED = { title: 'first', answer: answerOf(201, 'the order') }

let book = new Map<string, unknown>()
let reason: string | undefined

beforeEach(() => {
  book = new Map()
  reason = undefined
})

function answerOf(status: number, text: string, headers: Record<string, string> = {}): Answer {
  return { status, text, headers: new Headers(headers) }
}

function playing(expected: Expected, send: () => Answer) {
  const stage = {
    countOrders: async () => book.size,
    core: { keySetRequests: () => 0 },
  } as unknown as Stage
  const operator = { startLooking() {}, reason: () => reason, summary: () => 'seen' } as Operator
  const step = { title: 'second', request: 'GET /', expected, send: async () => send() }
  return play(step, { stage, operator, answers: new Map([[STORED.title, STORED.answer]]) })
}

it('finds no fault with a step that goes as expected', async () => {
  const outcome = await playing({ status: 200 }, () => answerOf(200, ''))
  expect(outcome).toEqual({ status: 200, seen: 'seen', faults: [] })
})

it.each<[string, Expected, () => Answer, string]>([
  ['another status', { status: 401 }, () => answerOf(200, ''), 'status: expected 401, was 200'],
  [
    'a write that nobody expected of',
    { status: 200 },
    () => {
      book.set('o-1', {})
      return answerOf(200, '')
    },
    'new orders: expected 0, was 1',
  ],
  [
    'another reason',
    { status: 401, reason: 'token_replayed' },
    () => {
      reason = 'token_expired'
      return answerOf(401, '')
    },
    'reason: expected token_replayed, was token_expired',
  ],
  [
    'a replay that says nothing of it',
    { status: 201, replayOf: 'first' },
    () => answerOf(201, 'the order'),
    'Idempotent-Replayed: expected true, was none',
  ],
  [
    'a replay with another body',
    { status: 201, replayOf: 'first' },
    () => answerOf(201, 'another', { 'idempotent-replayed': 'true' }),
    'replayed body: expected the order, was another',
  ],
  [
    'a first answer that claims to be a replay',
    { status: 201 },
    () => answerOf(201, '', { 'idempotent-replayed': 'true' }),
    'Idempotent-Replayed: expected none, was true',
  ],
  [
    'a missing Retry-After',
    { status: 503, retryAfter: '5' },
    () => answerOf(503, ''),
    'Retry-After: expected 5, was none',
  ],
  [
    'a member of the body',
    { status: 200, body: { attempts: 2 } },
    () => answerOf(200, '{"attempts":1}'),
    'attempts: expected 2, was 1',
  ],
])('tells of %s', async (_, expected, send, fault) => {
  expect((await playing(expected, send)).faults).toEqual([fault])
})

it('tells of a request that fails', async () => {
  const outcome = await playing({ status: 200 }, () => {
    throw new TypeError('no answer')
  })
  expect(outcome).toEqual({
    status: undefined,
    seen: 'seen',
    faults: ['failed: TypeError: no answer'],
  })
})
