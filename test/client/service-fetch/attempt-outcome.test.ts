import { describe, expect, it } from 'vitest'
import {
  type ClassifiedResponse,
  classifyResponse,
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
