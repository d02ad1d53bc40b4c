import { describe, expect, it } from 'vitest'
import {
  type AttemptOutcome,
  type ClassifiedResponse,
  classifyResponse,
  decideRetry,
  type RetryAction,
  type RetryContext,
} from '../../../src/client/service-fetch/retry-decision.js'

const NOW = Date.UTC(2026, 0, 1)
const REFUSAL = '{"type":"about:blank","title":"Unauthorized","status":401}'
const REFUSAL_HEADERS = {
  'content-type': 'application/problem+json',
  'cache-control': 'no-store',
  'www-authenticate': 'Bearer realm="service", error="invalid_token"',
}
const IN_PROGRESS = '{"type":"urn:express-service-auth:request-in-progress","status":409}'

interface Given extends Partial<Omit<ClassifiedResponse, 'headers' | 'body'>> {
  readonly headers?: Record<string, string>
  readonly body?: string | undefined
}

function judge({ status = 200, headers = {}, ...given }: Given) {
  const body = 'body' in given ? given.body && Buffer.from(given.body) : new Uint8Array(0)
  return classifyResponse({ status, headers: new Headers(headers), body: body || undefined }, NOW)
}

describe('what came of an attempt', () => {
  it.each([200, 201, 401, 409, 429, 502, 503, 504])(
    'a kept result, whatever its status (%s)',
    (status) => {
      const headers = { ...REFUSAL_HEADERS, 'retry-after': '1', 'idempotent-replayed': 'true' }
      expect(judge({ status, headers, body: REFUSAL })).toEqual({ type: 'replayed' })
    },
  )

  it.each([200, 204, 302, 400, 403, 404, 422, 429, 500, 501, 505])(
    'nothing that another attempt could fix (%s)',
    (status) => {
      const headers = { ...REFUSAL_HEADERS, 'retry-after': '1' }
      expect(judge({ status, headers, body: IN_PROGRESS })).toEqual({ type: 'answered' })
    },
  )

  it('the refusal of the contract', () => {
    expect(judge({ status: 401, headers: REFUSAL_HEADERS, body: REFUSAL })).toEqual({
      type: 'token_refused',
      isFromServiceAuth: true,
    })
  })

  it.each([
    'Bearer realm="service", error="invalid_token", DPoP algs="ES256", error="invalid_token"',
    'DPoP algs="ES256", error="invalid_token"',
  ])('the refusal of a receiver that takes proofs: %s', (challenge) => {
    const headers = { ...REFUSAL_HEADERS, 'www-authenticate': challenge }
    expect(judge({ status: 401, headers, body: REFUSAL })).toEqual({
      type: 'token_refused',
      isFromServiceAuth: true,
    })
  })

  it.each<[string, Omit<Given, 'status'>]>([
    ['one byte more', { body: `${REFUSAL}\n` }],
    ['another title', { body: REFUSAL.replace('Unauthorized', 'unauthorized') }],
    ['no body', { body: '' }],
    ['a body that flows', { body: undefined }],
    ['a charset', { headers: { 'content-type': 'application/problem+json; charset=utf-8' } }],
    [
      'another realm',
      { headers: { 'www-authenticate': 'Bearer realm="x", error="invalid_token"' } },
    ],
    [
      'a second challenge',
      { headers: { 'www-authenticate': 'Basic, Bearer error="invalid_token"' } },
    ],
    ['no scheme', { headers: { 'www-authenticate': 'error="invalid_token"' } }],
    [
      'another order',
      { headers: { 'www-authenticate': 'Bearer error="invalid_token", realm="service"' } },
    ],
    [
      'blanks before a comma',
      { headers: { 'www-authenticate': 'Bearer error="invalid_token" , realm="service"' } },
    ],
    ['no Cache-Control', { headers: { 'cache-control': '' } }],
    ['a compressed body', { headers: { 'content-encoding': 'gzip' } }],
  ])('a refusal that is not of the contract: %s', (_name, { headers, ...given }) => {
    const all = { ...REFUSAL_HEADERS, ...headers }
    expect(judge({ status: 401, headers: all, body: REFUSAL, ...given })).toEqual({
      type: 'token_refused',
      isFromServiceAuth: false,
    })
  })

  it.each(['', 'Basic realm="x"', 'error="invalid_request"', 'xBearer realm="service"'])(
    'a 401 without a challenge of Bearer or DPoP, as behind a gateway that renames it: %j',
    (challenge) => {
      const headers = { ...REFUSAL_HEADERS, 'www-authenticate': challenge }
      expect(judge({ status: 401, headers, body: REFUSAL })).toEqual({
        type: 'token_refused',
        isFromServiceAuth: false,
      })
    },
  )

  it.each([
    'Bearer',
    'Basic, DPoP algs="ES256"',
    'Bearer realm="service"',
    'Bearer error="invalid_tokens"',
    'Bearer xerror="invalid_token"',
    'Bearer error="invalid_token"x',
  ])('a 401 that another token would not fix: %j', (challenge) => {
    const headers = { ...REFUSAL_HEADERS, 'www-authenticate': challenge }
    expect(judge({ status: 401, headers, body: REFUSAL })).toEqual({ type: 'answered' })
  })

  it('a 503 that says when to come again', () => {
    const headers = { 'retry-after': '5' }
    expect(judge({ status: 503, headers })).toEqual({ type: 'unavailable', retryAfterMs: 5000 })
    expect(judge({ status: 503, headers, body: undefined })).toMatchObject({ type: 'unavailable' })
  })

  it.each([502, 503, 504])(
    'a gateway without an answer (%i), whether or not it says when',
    (status) => {
      const came = (seconds: string) => judge({ status, headers: { 'retry-after': seconds } })
      expect(came('0')).toEqual({ type: 'unavailable', retryAfterMs: 0 })
      expect(came('5')).toEqual({ type: 'unavailable', retryAfterMs: 5000 })
      expect(came('soon')).toEqual({ type: 'unavailable', retryAfterMs: undefined })
      expect(judge({ status })).toEqual({ type: 'unavailable', retryAfterMs: undefined })
      expect(judge({ status, body: undefined })).toMatchObject({ type: 'unavailable' })
    },
  )

  const problem = (mediaType: string) => ({ 'content-type': mediaType, 'retry-after': '2' })

  it.each(['application/problem+json', 'Application/Problem+JSON ; charset=utf-8'])(
    'a 409 of the same request, still running (%s)',
    (mediaType) => {
      const answer = { status: 409, headers: problem(mediaType), body: IN_PROGRESS }
      expect(judge(answer)).toEqual({ type: 'in_progress', retryAfterMs: 2000 })
    },
  )

  it.each<[string, Omit<Given, 'status'>]>([
    ['another problem', { body: IN_PROGRESS.replace('request-in-progress', 'outcome-unknown') }],
    ['another media type', { headers: problem('application/json') }],
    ['no JSON', { body: 'urn:express-service-auth:request-in-progress' }],
    ['null', { body: 'null' }],
    ['a list', { body: `[${IN_PROGRESS}]` }],
    ['no body', { body: '' }],
    ['a body that flows', { body: undefined }],
    ['no Retry-After', { headers: { 'content-type': 'application/problem+json' } }],
  ])('any other 409: %s', (_name, given) => {
    const usual = { headers: problem('application/problem+json'), body: IN_PROGRESS }
    expect(judge({ status: 409, ...usual, ...given })).toEqual({ type: 'answered' })
  })
})

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

it.each(Object.entries(TABLE))(
  'after %s does what the table says, and ends after the last attempt and at the deadline',
  (_name, { came, repeatable, bareWrite }) => {
    expect(decideRetry(came, FIRST)).toEqual(repeatable)
    expect(decideRetry(came, { ...FIRST, isRepeatable: false })).toEqual(bareWrite)
    expect(decideRetry(came, { ...FIRST, attempts: 4 })).toEqual(END)
    expect(decideRetry(came, { ...FIRST, leftMs: 0 })).toEqual(END)
  },
)

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
