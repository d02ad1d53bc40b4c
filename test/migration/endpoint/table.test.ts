import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { openGatedCore } from './gated-core.js'
import {
  bodyAbout,
  type Endpoint,
  type EndpointOptions,
  newId,
  openEndpoint,
  TOKEN,
} from './kit.js'

const MAX_BODY_BYTES = 2048

const core = await openGatedCore()

const problem = (status: number, title: string, more: readonly string[] = []): string => {
  const body = JSON.stringify({ type: 'about:blank', title, status })
  return [
    `HTTP/1.1 ${status} `,
    'Content-Type: application/problem+json',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    ...more,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

/** Node's own words for a status are not ours to promise. */
const withoutPhrase = (bytes: string): string => bytes.replace(/^(HTTP\/1\.1 \d+ )[^\r]*/, '$1')

describe.each(EXPRESS_MAJORS)('what a caller gets, on $major', ({ express }) => {
  const open = (options: EndpointOptions['options'] = {}): Promise<Endpoint> =>
    openEndpoint(core, { express, options: { maxBodyBytes: MAX_BODY_BYTES, ...options } })

  interface Sent {
    readonly method?: string
    readonly token?: string | undefined
    readonly type?: string
    readonly body?: string
    readonly path?: string
  }

  async function raw(endpoint: Endpoint, sent: Sent): Promise<string> {
    const { method = 'POST', type = 'application/json', path = '/migrate' } = sent
    const token = 'token' in sent ? sent.token : TOKEN
    const body = sent.body ?? JSON.stringify(bodyAbout(newId()))
    const bytes = await endpoint.raw({
      method,
      path,
      headers: [
        ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
        `Content-Type: ${type}`,
        `Content-Length: ${Buffer.byteLength(body)}`,
      ],
      body,
    })
    return withoutPhrase(bytes)
  }

  const NO_TOKEN = problem(401, 'Unauthorized', ['WWW-Authenticate: Bearer realm="migration"'])
  const FORBIDDEN = problem(403, 'Forbidden')
  const UNAVAILABLE = problem(503, 'Service Unavailable', ['Retry-After: 5'])

  it('a user who has come over, now or before: a 200 to the byte', async () => {
    const endpoint = await open()
    const id = newId()
    const body = JSON.stringify({ status: 'OK', userId: id })
    const ok = [
      'HTTP/1.1 200 ',
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${body.length}`,
      'Cache-Control: no-store',
      'Connection: close',
      '',
      body,
    ].join('\r\n')
    const sent = { body: JSON.stringify(bodyAbout(id)) }
    expect(await raw(endpoint, sent)).toBe(ok)
    expect(await raw(endpoint, sent)).toBe(ok)
    expect(endpoint.decisions).toMatchObject([
      { outcome: 'accepted', reason: 'created', status: 200, externalUserId: id },
      { outcome: 'accepted', reason: 'existing', status: 200, externalUserId: id },
    ])
  })

  it('no token, a malformed one and an unknown one: the same 401', async () => {
    const endpoint = await open()
    expect(await raw(endpoint, { token: undefined })).toBe(NO_TOKEN)
    expect(await raw(endpoint, { token: `${TOKEN}x` })).toBe(NO_TOKEN)
    expect(await raw(endpoint, { token: `${TOKEN} ${TOKEN}` })).toBe(NO_TOKEN)
    expect(await raw(endpoint, { token: '' })).toBe(NO_TOKEN)
    expect(endpoint.decisions).toEqual(
      ['credentials_missing', 'token_unknown', 'token_unknown', 'authorization_malformed'].map(
        (reason) => ({ by: 'migrationEndpoint', outcome: 'refused', reason, status: 401 }),
      ),
    )
  })

  it('another method: 405 with Allow', async () => {
    const endpoint = await open()
    const answer = problem(405, 'Method Not Allowed', ['Allow: POST'])
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      expect(await raw(endpoint, { method })).toBe(answer)
    }
    const toHead = await raw(endpoint, { method: 'HEAD' })
    expect(toHead).toBe(answer.slice(0, answer.indexOf('{')))
  })

  it('another media type, a body that is too large, another form: 415, 413, 400', async () => {
    const endpoint = await open()
    expect(await raw(endpoint, { type: 'text/plain' })).toBe(problem(415, 'Unsupported Media Type'))
    const large = JSON.stringify(bodyAbout('x'.repeat(MAX_BODY_BYTES)))
    expect(await raw(endpoint, { body: large })).toBe(problem(413, 'Content Too Large'))
    expect(await raw(endpoint, { body: '{}' })).toBe(problem(400, 'Bad Request'))
  })

  it('over a limit: 429 with the seconds to wait', async () => {
    const once = () => new RateLimiterMemory({ points: 1, duration: 30 })
    const many = () => new RateLimiterMemory({ points: 100, duration: 30 })
    const answer = problem(429, 'Too Many Requests', ['Retry-After: 30'])
    const byToken = await open({ limits: { credential: once(), user: many() } })
    expect(await raw(byToken, {})).toMatch(/^HTTP\/1\.1 200 /)
    expect(await raw(byToken, {})).toBe(answer)
    const byUser = await open({ limits: { credential: many(), user: once() } })
    const sent = { body: JSON.stringify(bodyAbout(newId())) }
    expect(await raw(byUser, sent)).toMatch(/^HTTP\/1\.1 200 /)
    expect(await raw(byUser, sent)).toBe(answer)
    expect(await raw(byUser, {})).toMatch(/^HTTP\/1\.1 200 /)
    expect(byToken.decisions.at(-1)).not.toHaveProperty('externalUserId')
    expect(byUser.decisions[1]).toMatchObject({ reason: 'user_limited', status: 429 })
  })

  it('whoever must not come over: 403', async () => {
    const endpoint = await open()
    const body = JSON.stringify({ ...bodyAbout(newId()), externalUserId: 'another' })
    expect(await raw(endpoint, { body })).toBe(FORBIDDEN)
  })

  it('what it needs fails: 503', async () => {
    const endpoint = await open({
      loadUser: () => {
        throw new Error('unreachable')
      },
    })
    expect(await raw(endpoint, {})).toBe(UNAVAILABLE)
    expect(endpoint.errors).toEqual([])
  })

  it('nothing but its path is its own', async () => {
    const endpoint = await open()
    expect(await raw(endpoint, { path: '/migrate/' })).toMatch(/ 200 /)
    // Behind the endpoint the receiver answers everything.
    expect(await raw(endpoint, { path: '/migrate/other', token: undefined })).toMatch(/"ok":true/)
  })
})
