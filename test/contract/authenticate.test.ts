import express from 'express'
import {
  type AuthenticateOptions,
  type Authentication,
  type HeadersInput,
  memoryStore,
  type OAuth2Policy,
  type RefusalReason,
  requirePermissions,
  requireSingleUse,
  type ServiceAuthPolicy,
  type SingleUseStore,
  serviceAuth,
  type UndecidedReason,
} from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { createOAuth2TestIssuer, createTestIssuer } from '../support/issuer/test-issuer.js'
import type { RawRequest } from '../support/network/raw-exchange.js'
import { collectEvents } from '../support/observe/channel-events.js'
import { authFor, startBehind } from '../support/receiver/receiver.js'
import {
  FORBIDDEN,
  INVALID_TOKEN,
  NO_TOKEN,
  UNAVAILABLE,
  withoutBody,
} from '../support/receiver/refusal-bytes.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'
import { throwing } from '../support/throwing.js'
import { ENTRIES } from './entries.js'

const issuer = await createTestIssuer()
const oauth2Issuer = await createOAuth2TestIssuer()
const away = await createTestIssuer()
away.down()
afterAll(() => Promise.all([issuer, oauth2Issuer, away].map((each) => each.close())))

const bearer = (token: string): HeadersInput => ({ authorization: `Bearer ${token}` })

const reasonOf = (answer: Authentication): string =>
  answer.outcome === 'accepted' ? 'accepted' : answer.reason

type AnyPolicy = ServiceAuthPolicy | OAuth2Policy

/** Every entry to one policy and its guards, and the last event of each answer without `by`. */
async function entriesTo(policy: AnyPolicy, options: AuthenticateOptions = {}) {
  const told = collectEvents('decision')
  const auth = authFor(policy)
  const entrances = await Promise.all(ENTRIES.map(({ open }) => open(auth, options)))
  const ask = async (request: RawRequest) => {
    const answers: string[] = []
    const events: unknown[] = []
    for (const entrance of entrances) {
      answers.push(await entrance.raw(request))
      events.push({ ...told.splice(0).at(-1), by: undefined })
    }
    return { answers, events }
  }
  return { auth, ask }
}

const forEach = <T>(value: T): T[] => ENTRIES.map(() => value)

const authorizationOf = (token: string): RawRequest => ({
  headers: [`Authorization: Bearer ${token}`],
})

describe('authenticate', () => {
  const unknown = new ManualDenylist()
  unknown.isKnown = false
  const down: SingleUseStore = { consume: () => Promise.reject(new Error('down')) }
  it.each<
    [
      RefusalReason | UndecidedReason,
      string,
      Partial<ServiceAuthPolicy>,
      AuthenticateOptions?,
      Record<string, unknown>?,
    ]
  >([
    ['caller_not_approved', FORBIDDEN, { callers: ['reporting'] }],
    ['caller_denied', FORBIDDEN, { denylist: { callers: ['billing'] } }],
    ['permission_missing', FORBIDDEN, { permissions: ['orders:admin'] }],
    ['permission_missing', FORBIDDEN, {}, { permissions: ['orders:read', 'orders:admin'] }],
    ['token_id_missing', INVALID_TOKEN, {}, { singleUse: memoryStore() }, { jti: undefined }],
    ['token_replayed', INVALID_TOKEN, {}, { singleUse: memoryStore() }],
    ['key_set_unavailable', UNAVAILABLE, { jwksUri: away.jwksUri }],
    ['denylist_unavailable', UNAVAILABLE, { denylist: unknown }],
    ['store_unavailable', UNAVAILABLE, {}, { singleUse: down }],
  ])('refuses like the middlewares: %s', async (reason, bytes, policy, options = {}, claims) => {
    const { auth, ask } = await entriesTo(issuer.policy(policy), options)
    const token = issuer.token(claims)
    // The first use of a token.
    await auth.authenticate(bearer(token), options)
    const { answers, events } = await ask(authorizationOf(token))
    expect(answers).toEqual(forEach(bytes))
    expect(events).toMatchObject(forEach({ reason }))
    expect(events).toEqual(forEach(events[0]))
    const answer = await auth.authenticate(bearer(token), options)
    expect(answer).toMatchObject({ reason, status: Number(bytes.split(' ', 2)[1]) })
    const parts = [answer, 'headers' in answer && answer.headers]
    expect(parts.map(Object.isFrozen)).toEqual([true, true])
  })

  it('answers HEAD, no token and two tokens like the middlewares', async () => {
    const { ask } = await entriesTo(issuer.policy())
    expect((await ask({})).answers).toEqual(forEach(NO_TOKEN))
    expect((await ask({ method: 'HEAD' })).answers).toEqual(forEach(withoutBody(NO_TOKEN)))
    const { headers = [] } = authorizationOf(issuer.token())
    const twice = await ask({ headers: [...headers, ...headers] })
    expect(twice.answers).toEqual(forEach(INVALID_TOKEN))
    expect(twice.events).toMatchObject(forEach({ reason: 'authorization_repeated' }))
  })

  it('gives the identity that the middleware gives', async () => {
    const auth = authFor(issuer.policy())
    const token = issuer.token()
    const answer = await auth.authenticate(bearer(token))
    expect(Object.isFrozen(answer)).toBe(true)
    for (const { entry, open } of ENTRIES) {
      const entrance = await open(auth)
      await entrance.status(token)
      const [service] = entrance.accepted
      expect(answer, entry).toEqual({ outcome: 'accepted', service })
      expect(Object.isFrozen(service), entry).toBe(true)
    }
  })

  it('asks for permissions before it consumes the token', async () => {
    const auth = authFor(issuer.policy())
    const singleUse = memoryStore()
    const headers = bearer(issuer.token({ permissions: ['orders:read'] }))
    const options = { singleUse, permissions: ['orders:read', 'orders:write'] }
    const refused = await auth.authenticate(headers, options)
    expect(refused).toEqual({
      outcome: 'refused',
      reason: 'permission_missing',
      status: 403,
      headers: {
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
        'www-authenticate': 'Bearer realm="service", error="insufficient_scope"',
      },
      body: '{"type":"about:blank","title":"Forbidden","status":403}',
    })
    const read = { singleUse, permissions: 'orders:read' }
    expect(reasonOf(await auth.authenticate(headers, read))).toBe('accepted')
    expect(reasonOf(await auth.authenticate(headers, read))).toBe('token_replayed')
  })

  it('consumes a token once together with the middlewares', async () => {
    const store = memoryStore()
    const auth = authFor(issuer.policy())
    const receiver = await startBehind(
      express,
      auth,
      requirePermissions('orders:read'),
      requireSingleUse({ store }),
    )
    const token = issuer.token()
    expect((await receiver.call(token)).status).toBe(200)
    const answer = await auth.authenticate(bearer(token), { singleUse: store })
    expect(reasonOf(answer)).toBe('token_replayed')
  })

  it('reports one event a call, with the id of a Node request', async () => {
    const events = collectEvents('decision')
    const auth = authFor(issuer.policy())
    const headers = bearer(issuer.token())
    const caller = { by: 'authenticate', caller: 'billing', keyId: issuer.kid }
    await auth.authenticate(headers, { permissions: 'orders:read', singleUse: memoryStore() })
    await auth.authenticate(headers, { permissions: 'orders:delete' })
    expect(events).toEqual([
      { outcome: 'accepted', confirmation: 'none', ...caller },
      {
        outcome: 'refused',
        reason: 'permission_missing',
        status: 403,
        permission: 'orders:delete',
        ...caller,
      },
    ])
    await auth.authenticate({ rawHeaders: [], headers: {}, id: 'request-7' } as HeadersInput)
    expect(events[2]).toMatchObject({ reason: 'credentials_missing', requestId: 'request-7' })
  })
})

describe('the headers of authenticate', () => {
  const auth = serviceAuth(issuer.policy())
  afterAll(() => auth.close())
  const token = issuer.token()
  const good = `Bearer ${token}`

  it.each<[string, HeadersInput]>([
    ['a Node request', { rawHeaders: ['Host', 'x', 'AUTHORIZATION', good] }],
    [
      'a copy of the parts of a Node request',
      { rawHeaders: ['Authorization', good], headers: {}, method: 'GET', url: '/' } as HeadersInput,
    ],
    ['a Headers', new Headers({ authorization: good })],
    ['an object', { authorization: good }],
    ['an object in another case', { Authorization: good }],
    ['an object with a list', { authorization: [good] }],
    ['an object without a prototype', Object.assign(Object.create(null), { authorization: good })],
    [
      'an object with a header named rawHeaders',
      { rawHeaders: ['authorization', 'x'], authorization: good },
    ],
    ['an object with an undefined second', { authorization: good, Authorization: undefined }],
    ['the headers of HTTP/2', { ':authority': 'orders.test', ':path': '/', authorization: good }],
    ['an object with other members', { authorization: good, cookie: ['a', 'b'], via: undefined }],
  ])('may be %s', async (_, headers) => {
    expect(reasonOf(await auth.authenticate(headers))).toBe('accepted')
  })

  const joined = new Headers({ authorization: good })
  joined.append('authorization', good)

  it.each<[string, HeadersInput, string]>([
    ['rawHeaders', { rawHeaders: ['authorization', good, 'Authorization', good] }, 'repeated'],
    ['a Headers', joined, 'malformed'],
    ['an object', { authorization: good, Authorization: good }, 'repeated'],
    ['an object, one empty', { authorization: good, Authorization: '' }, 'repeated'],
    ['a list', { authorization: [good, good] }, 'repeated'],
    ['a text', { authorization: `${good}, ${good}` }, 'malformed'],
  ])('with two tokens in %s are refused', async (_, headers, reason) => {
    const answer = await auth.authenticate(headers)
    expect(answer).toMatchObject({ outcome: 'refused', status: 401 })
    expect(reasonOf(answer)).toMatch(new RegExp(`${reason}$`))
  })

  it.each<[string, HeadersInput]>([
    ['nothing', {}],
    ['undefined', { authorization: undefined }],
    ['an empty list', { authorization: [] }],
    ['an empty Headers', new Headers()],
    ['an inherited member', Object.create({ authorization: good })],
    ['a list of no raw headers', { rawHeaders: [] }],
  ])('with %s have no token', async (_, headers) => {
    expect(reasonOf(await auth.authenticate(headers))).toBe('credentials_missing')
  })

  it.each<[string, unknown, unknown?]>([
    ['undefined', undefined],
    ['a list', ['authorization', good]],
    ['a number as value', { authorization: 5 }],
    ['headers that rawHeaders lack', { rawHeaders: [], headers: { authorization: good } }],
    ['an unknown option', {}, { permission: 'x' }],
    ['options that are text', {}, 'orders:read'],
    ['an empty permission', {}, { permissions: '' }],
    ['a permission that is no text', {}, { permissions: ['a', 1] }],
    ['a store that is none', {}, { singleUse: {} }],
    ['no permission', {}, { permissions: [] }],
    // biome-ignore lint/suspicious/noSparseArray: what is tested
    ['a hole among the permissions', { authorization: good }, { permissions: [, 'orders:admin'] }],
    ['a fetch request', new Request('http://orders.test', { headers: { authorization: good } })],
    ['an object that has headers', { headers: { authorization: good } }],
    ['a Map', new Map([['authorization', good]])],
    ['raw headers that are no text', { rawHeaders: ['authorization', Buffer.from(good)] }],
  ])('reject with wrong_wiring for %s', async (_, headers, options) => {
    const call = auth.authenticate(headers as HeadersInput, options as object)
    await expect(call).rejects.toMatchObject({ name: 'ServiceAuthError', code: 'wrong_wiring' })
  })

  it('reject with internal if a clock fails, and the event channel gets nothing', async () => {
    const broken = authFor(
      issuer.policy({
        clock: throwing(new Error('no time')),
      }),
    )
    await expect(broken.authenticate(bearer(token))).rejects.toMatchObject({ code: 'internal' })
  })

  it('may change afterwards: nothing of them is kept', async () => {
    const headers: Record<string, string> = { authorization: good }
    const answer = auth.authenticate(headers)
    headers['authorization'] = 'Bearer other'
    expect(reasonOf(await answer)).toBe('accepted')
    const permissions = ['orders:admin']
    const refused = auth.authenticate(
      { authorization: `Bearer ${issuer.token()}` },
      { permissions },
    )
    permissions.length = 0
    expect(reasonOf(await refused)).toBe('permission_missing')
  })
})

describe('in an app that has replaced the global Promise', () => {
  it.each([
    [
      'an expired token',
      () => issuer.token({ exp: 1_000_000_000, iat: 999_999_900 }),
      'token_expired',
    ],
    ['a bound token without its proof', () => issuer.boundToken().token, 'proof_missing'],
  ] as const)('%s is refused', async (_name, token, reason) => {
    const auth = authFor(
      issuer.policy({ senderConstraint: { dpop: { baseUrls: ['http://orders.test'] } } }),
    )
    await auth.ready()
    const native = globalThis.Promise
    globalThis.Promise = class<T> extends native<T> {} as typeof native
    const pending = auth.authenticate(bearer(token()), { method: 'GET', url: '/orders' })
    globalThis.Promise = native
    expect(reasonOf(await pending)).toBe(reason)
  })
})
