import { describe, expect, it } from 'vitest'
import type { AttemptOutcome } from '../../../src/client/service-fetch/retry-decision.js'
import {
  decideRetry,
  type RetryAction,
  type RetryContext,
} from '../../../src/client/service-fetch/retry-decision.js'

const FIRST: RetryContext = {
  isRepeatable: true,
  attempts: 1,
  maxAttempts: 4,
  hasChangedToken: false,
  leftMs: 30_000,
  random: 0,
}

const END: RetryAction = { type: 'end' }
const ANOTHER_TOKEN: RetryAction = { type: 'another_token' }
const retry = (afterMs: number): RetryAction => ({ type: 'retry', afterMs })

interface Row {
  readonly came: AttemptOutcome
  /** A read, or a write with a key. */
  readonly repeatable: RetryAction
  readonly bareWrite: RetryAction
}

const TABLE: Record<string, Row> = {
  'a kept result': { came: { type: 'replayed' }, repeatable: END, bareWrite: END },
  'the refusal of the contract': {
    came: { type: 'token_refused', isFromServiceAuth: true },
    repeatable: ANOTHER_TOKEN,
    bareWrite: ANOTHER_TOKEN,
  },
  'another refusal of the token': {
    came: { type: 'token_refused', isFromServiceAuth: false },
    repeatable: ANOTHER_TOKEN,
    bareWrite: END,
  },
  'a 502, 503 or 504 with Retry-After': {
    came: { type: 'unavailable', retryAfterMs: 5000 },
    repeatable: retry(5000),
    bareWrite: END,
  },
  'a 502 or 504 without': {
    came: { type: 'unavailable', retryAfterMs: undefined },
    repeatable: retry(50),
    bareWrite: END,
  },
  'a 409 of a request in progress': {
    came: { type: 'in_progress', retryAfterMs: 1000 },
    repeatable: retry(1000),
    bareWrite: END,
  },
  'no answer': { came: { type: 'network' }, repeatable: retry(50), bareWrite: END },
  'no token, for a reason that passes': {
    came: { type: 'no_token' },
    repeatable: retry(1920),
    bareWrite: retry(1920),
  },
  'the deadline': { came: { type: 'deadline' }, repeatable: END, bareWrite: END },
  'anything else': { came: { type: 'answered' }, repeatable: END, bareWrite: END },
}

describe.each(Object.entries(TABLE))('after %s', (_name, { came, repeatable, bareWrite }) => {
  it('does with a read, or a write with a key, what the table says', () => {
    expect(decideRetry(came, FIRST)).toEqual(repeatable)
  })

  it('does with a write without a key what the table says', () => {
    expect(decideRetry(came, { ...FIRST, isRepeatable: false })).toEqual(bareWrite)
  })

  it('ends after the last attempt', () => {
    expect(decideRetry(came, { ...FIRST, attempts: 4 })).toEqual(END)
  })

  it('ends when the deadline has come', () => {
    expect(decideRetry(came, { ...FIRST, leftMs: 0 })).toEqual(END)
  })
})

it.each([true, false])('asks for another token once in a call (repeatable: %s)', (isRepeatable) => {
  const standing = { ...FIRST, attempts: 2, isRepeatable, hasChangedToken: true }
  expect(decideRetry({ type: 'token_refused', isFromServiceAuth: true }, standing)).toEqual(END)
})

it.each([
  { leftMs: 5001, step: retry(5000) },
  { leftMs: 5000, step: END },
])('begins no wait that would pass the deadline ($leftMs ms left)', ({ leftMs, step }) => {
  const came: AttemptOutcome = { type: 'unavailable', retryAfterMs: 5000 }
  expect(decideRetry(came, { ...FIRST, leftMs })).toEqual(step)
})

it.each<AttemptOutcome>([{ type: 'network' }, { type: 'unavailable', retryAfterMs: undefined }])(
  'after $type waits at random between half and all of a time that doubles up to five seconds',
  (came) => {
    const waits = (random: number) =>
      [1, 2, 3, 7, 9].map((attempts) => {
        const step = decideRetry(came, { ...FIRST, attempts, maxAttempts: 10, random })
        return step.type === 'retry' ? step.afterMs : undefined
      })
    expect(waits(0)).toEqual([50, 100, 200, 2500, 2500])
    expect(waits(0.999_999)).toEqual([100, 200, 400, 5000, 5000])
  },
)

it.each([
  [4, 30_000, 15_000],
  [4, 1000, 400],
  [10, 30_000, 15_000],
  [2, 30_000, 10_000],
])('lets %d attempts to get a token reach over most of %d ms', (maxAttempts, deadlineMs, minMs) => {
  for (const random of [0, 0.999_999]) {
    let leftMs = deadlineMs
    for (let attempts = 1; attempts < maxAttempts; attempts += 1) {
      const standing = { ...FIRST, attempts, maxAttempts, leftMs, random }
      const step = decideRetry({ type: 'no_token' }, standing)
      if (step.type !== 'retry') throw new Error(`ends after ${attempts}`)
      leftMs -= step.afterMs
    }
    expect(deadlineMs - leftMs).toBeGreaterThan(minMs)
    expect(leftMs).toBeGreaterThan(0.3 * deadlineMs)
  }
})
