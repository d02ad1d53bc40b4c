import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { openGatedCore } from './gated-core.js'
import {
  bodyAbout,
  type Endpoint,
  type EndpointOptions,
  legacyUser,
  newId,
  OTHER_TOKEN,
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

const NO_TOKEN = problem(401, 'Unauthorized', ['WWW-Authenticate: Bearer realm="migration"'])
const NOT_POST = problem(405, 'Method Not Allowed', ['Allow: POST'])
const tooMany = (seconds: number) => problem(429, 'Too Many Requests', [`Retry-After: ${seconds}`])

interface Sent {
  readonly method?: string
  readonly token?: string | undefined
  readonly type?: string
  readonly body?: string
  readonly path?: string
}

/** What is wrong with a request, in the order in which a caller is told. */
const FAULTS: readonly [reason: string, answer: string, of: Sent][] = [
  ['token_unknown', NO_TOKEN, { token: `no-token-${'x'.repeat(32)}` }],
  ['credential_limited', tooMany(1), {}],
  ['method_not_allowed', NOT_POST, { method: 'PUT' }],
  ['media_type_unsupported', problem(415, 'Unsupported Media Type'), { type: 'text/plain' }],
  ['body_too_large', problem(413, 'Content Too Large'), {}],
  ['body_malformed', problem(400, 'Bad Request'), {}],
  ['user_limited', tooMany(1), {}],
  ['user_unknown', problem(403, 'Forbidden'), {}],
]

/** Node's own words for a status are not ours to promise. */
const withoutPhrase = (bytes: string): string => bytes.replace(/^(HTTP\/1\.1 \d+ )[^\r]*/, '$1')

describe.each(EXPRESS_MAJORS)('what a caller gets, on $major', ({ express }) => {
  const open = (options: EndpointOptions['options'] = {}): Promise<Endpoint> =>
    openEndpoint(core, { express, options: { maxBodyBytes: MAX_BODY_BYTES, ...options } })

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

  it('each fault is told before all that come after it', async () => {
    /** How many faults from the front the request does not have. */
    let fixed = 0
    const has = (reason: string): boolean => FAULTS.findIndex(([of]) => of === reason) >= fixed
    const limiter = (reason: string) => ({
      consume: async () => {
        if (has(reason)) throw { msBeforeNext: 1 }
      },
    })
    const endpoint = await open({
      limits: { credential: limiter('credential_limited'), user: limiter('user_limited') },
      loadUser: ({ externalUserId }) =>
        has('user_unknown') ? undefined : legacyUser(externalUserId),
    })
    for (const [index, [reason, answer]] of FAULTS.entries()) {
      fixed = index
      const more = has('body_malformed') ? { more: true } : {}
      const filler = has('body_too_large') ? { filler: 'x'.repeat(MAX_BODY_BYTES) } : {}
      const body = JSON.stringify({ ...bodyAbout(newId()), ...more, ...filler })
      const faulty = FAULTS.slice(index).map(([, , of]) => of)
      expect(await raw(endpoint, Object.assign({ body }, ...faulty))).toBe(answer)
      expect(endpoint.decisions.at(-1)?.reason).toBe(reason)
    }
    fixed = FAULTS.length
    expect(await raw(endpoint, {})).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('another method: 405', async () => {
    const endpoint = await open()
    for (const method of ['GET', 'DELETE', 'OPTIONS', 'PATCH']) {
      expect(await raw(endpoint, { method })).toBe(NOT_POST)
    }
    const toHead = await raw(endpoint, { method: 'HEAD' })
    expect(toHead).toBe(NOT_POST.slice(0, NOT_POST.indexOf('{')))
  })

  it('over a limit: 429 with the seconds to wait', async () => {
    const once = () => new RateLimiterMemory({ points: 1, duration: 30 })
    const many = () => new RateLimiterMemory({ points: 100, duration: 30 })
    const byToken = await open({ limits: { credential: once(), user: many() } })
    expect(await raw(byToken, {})).toMatch(/^HTTP\/1\.1 200 /)
    expect(await raw(byToken, {})).toBe(tooMany(30))
    const byUser = await open({ limits: { credential: many(), user: once() } })
    const sent = { body: JSON.stringify(bodyAbout(newId())) }
    expect(await raw(byUser, sent)).toMatch(/^HTTP\/1\.1 200 /)
    expect(await raw(byUser, sent)).toBe(tooMany(30))
    expect(await raw(byUser, {})).toMatch(/^HTTP\/1\.1 200 /)
    expect(byToken.decisions.at(-1)).not.toHaveProperty('externalUserId')
    expect(byUser.decisions[1]).toMatchObject({ reason: 'user_limited', status: 429 })
  })

  it('what it needs fails: 503', async () => {
    const endpoint = await open({
      loadUser: () => {
        throw new Error('unreachable')
      },
    })
    const answer = problem(503, 'Service Unavailable', ['Retry-After: 5'])
    expect(await raw(endpoint, {})).toBe(answer)
    expect(endpoint.errors).toEqual([])
  })

  it('nothing but its path is its own', async () => {
    const endpoint = await open()
    expect(await raw(endpoint, { path: '/migrate/' })).toMatch(/ 200 /)
    // Behind the endpoint the receiver answers everything.
    expect(await raw(endpoint, { path: '/migrate/other', token: undefined })).toMatch(/"ok":true/)
  })
})

it('a limiter counts a digest of the token and of the user, at each issuer', async () => {
  const counted: string[] = []
  const limiter = { consume: async (key: unknown) => counted.push(String(key)) }
  const endpoint = await openEndpoint(core, {
    options: { limits: { credential: limiter, user: limiter } },
  })
  const id = newId()
  for (const token of [TOKEN, TOKEN, OTHER_TOKEN]) await endpoint.post(bodyAbout(id), { token })
  const [credential, user, ...others] = counted
  expect(others.slice(0, 2)).toEqual([credential, user])
  expect(new Set(counted).size).toBe(4)
  expect(counted.join(' ')).not.toMatch(/user-|example/)
})
