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

const REFUSED = { status: 401, headers: REFUSAL_HEADERS, body: REFUSAL }
const challenged = (challenge: string): Given => ({
  ...REFUSED,
  headers: { ...REFUSAL_HEADERS, 'www-authenticate': challenge },
})
const refused = (isFromServiceAuth: boolean): AttemptOutcome => ({
  type: 'token_refused',
  isFromServiceAuth,
})
const ANSWERED: AttemptOutcome = { type: 'answered' }

const inProgress = (given: Given = {}): Given => ({
  status: 409,
  headers: { 'content-type': 'application/problem+json', 'retry-after': '2' },
  body: IN_PROGRESS,
  ...given,
})

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
      expect(judge({ status, headers, body: IN_PROGRESS })).toEqual(ANSWERED)
    },
  )

  it.each([
    'Bearer realm="service", error="invalid_token"',
    'Bearer realm="service", error="invalid_token", DPoP algs="ES256", error="invalid_token"',
    'DPoP algs="ES256", error="invalid_token"',
  ])('the refusal of the contract: %s', (challenge) => {
    expect(judge(challenged(challenge))).toEqual(refused(true))
  })

  it.each<[string, Given]>([
    ['one byte more', { body: `${REFUSAL}\n` }],
    ['another title', { body: REFUSAL.replace('Unauthorized', 'unauthorized') }],
    ['no body', { body: '' }],
    ['a body that flows', { body: undefined }],
    ['a charset', { headers: { 'content-type': 'application/problem+json; charset=utf-8' } }],
    ['no Cache-Control', { headers: { 'cache-control': '' } }],
    ['a compressed body', { headers: { 'content-encoding': 'gzip' } }],
  ])('a refusal that is not of the contract: %s', (_name, { headers, ...given }) => {
    const all = { ...REFUSAL_HEADERS, ...headers }
    expect(judge({ ...REFUSED, headers: all, ...given })).toEqual(refused(false))
  })

  it.each([
    // Another token may help, or a gateway has renamed or dropped the challenge.
    ...['Bearer realm="x", error="invalid_token"', 'Basic, Bearer error="invalid_token"'],
    ...['error="invalid_token"', 'Bearer error="invalid_token" , realm="service"'],
    ...['', 'Basic realm="x"', 'error="invalid_request"', 'xBearer realm="service"'],
  ])('a 401 of another service, which another token may fix: %j', (challenge) => {
    expect(judge(challenged(challenge))).toEqual(refused(false))
  })

  it.each([
    ...['Bearer', 'Basic, DPoP algs="ES256"', 'Bearer realm="service"'],
    ...['invalid_tokens"', 'invalid_token"x'].map((end) => `Bearer error="${end}`),
    'Bearer xerror="invalid_token"',
  ])('a 401 that another token would not fix: %j', (challenge) => {
    expect(judge(challenged(challenge))).toEqual(ANSWERED)
  })

  it.each([502, 503, 504])(
    'no answer of the service (%i), whether or not it says when',
    (status) => {
      const came = (headers: Record<string, string>, body: string | undefined = '') =>
        judge({ status, headers, body })
      const unavailable = { type: 'unavailable', retryAfterMs: undefined }
      expect(came({ 'retry-after': '0' })).toEqual({ ...unavailable, retryAfterMs: 0 })
      expect(came({ 'retry-after': '5' })).toEqual({ ...unavailable, retryAfterMs: 5000 })
      expect(came({ 'retry-after': 'soon' })).toEqual(unavailable)
      expect(judge({ status, body: undefined })).toEqual(unavailable)
    },
  )

  it.each(['application/problem+json', 'Application/Problem+JSON ; charset=utf-8'])(
    'a 409 of the same request, still running (%s)',
    (mediaType) => {
      const headers = { 'content-type': mediaType, 'retry-after': '2' }
      const expected = { type: 'in_progress', retryAfterMs: 2000 }
      expect(judge(inProgress({ headers }))).toEqual(expected)
    },
  )

  it.each<[string, Given]>([
    ['another problem', { body: IN_PROGRESS.replace('request-in-progress', 'outcome-unknown') }],
    ['another type', { headers: { 'content-type': 'application/json', 'retry-after': '2' } }],
    ['no JSON', { body: 'urn:express-service-auth:request-in-progress' }],
    ['a list', { body: `[${IN_PROGRESS}]` }],
    ['no body', { body: '' }],
    ['a body that flows', { body: undefined }],
    ['no Retry-After', { headers: { 'content-type': 'application/problem+json' } }],
  ])('any other 409: %s', (_name, given) => {
    expect(judge(inProgress(given))).toEqual(ANSWERED)
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
