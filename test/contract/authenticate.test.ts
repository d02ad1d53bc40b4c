import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import {
  type Authentication,
  type DecisionEvent,
  type HeadersInput,
  memoryStore,
  requirePermissions,
  requireSingleUse,
  type SingleUseStore,
  serviceAuth,
} from 'express-service-auth'
import { hostileTokens } from 'express-service-auth/testing'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createOAuth2TestIssuer, createTestIssuer } from '../support/issuer/test-issuer.js'
import { rawRequest } from '../support/network/raw-exchange.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'

const issuer = await createTestIssuer()
const oauth2Issuer = await createOAuth2TestIssuer()
afterAll(() => Promise.all([issuer.close(), oauth2Issuer.close()]))

const bearer = (token: string): HeadersInput => ({ authorization: `Bearer ${token}` })

const reasonOf = (answer: Authentication): string =>
  answer.outcome === 'accepted' ? 'accepted' : answer.reason

/** Names of headers have no case and no order. */
const linesOf = (answer: string): string[] => answer.toLowerCase().split('\r\n').sort()

describe('authenticate', () => {
  it.each([
    ['service tokens', issuer],
    ['OAuth 2.0 access tokens', oauth2Issuer],
  ])('decides on hostile %s like the middleware, to the byte', async (_, of) => {
    const events: DecisionEvent[] = []
    const auth = authFor(of.policy({ onDecision: (event) => events.push(event) }))
    await auth.ready()
    const { port } = await serverWith(async (request, response) => {
      const answer = await auth.authenticate(request)
      if (answer.outcome === 'accepted') response.end()
      else {
        response.setHeader('X-Powered-By', 'Express')
        response.writeHead(answer.status, {
          ...answer.headers,
          'content-length': Buffer.byteLength(answer.body),
        })
        response.end(answer.body)
      }
    })
    const receiver = await startReceiver({ express, mount: (app) => app.use(auth) })
    for (const { name, authorization } of hostileTokens(of)) {
      const headers = [`Authorization: ${authorization}`]
      const bare = await rawRequest(port, { headers })
      const middleware = await receiver.rawWith(authorization)
      expect(linesOf(bare), name).toEqual(linesOf(middleware))
      const [first, second] = events.splice(0)
      expect({ ...first, by: undefined }, name).toEqual({ ...second, by: undefined })
      expect([first?.by, second?.by]).toEqual(['authenticate', 'serviceAuth'])
    }
  })

  it('gives the identity that the middleware gives', async () => {
    const auth = authFor(issuer.policy())
    const token = issuer.token()
    let seen: unknown
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(auth),
      handler(request, response) {
        seen = request.service
        response.end()
      },
    })
    await receiver.call(token)
    const answer = await auth.authenticate(bearer(token))
    expect(answer).toEqual({ outcome: 'accepted', service: seen })
    expect(Object.isFrozen(answer)).toBe(true)
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
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(auth, requirePermissions('orders:read'), requireSingleUse({ store })),
    })
    const token = issuer.token()
    expect((await receiver.call(token)).status).toBe(200)
    const answer = await auth.authenticate(bearer(token), { singleUse: store })
    expect(reasonOf(answer)).toBe('token_replayed')
  })

  it('reports one event a call', async () => {
    const events: DecisionEvent[] = []
    const auth = authFor(issuer.policy({ onDecision: (event) => events.push(event) }))
    const headers = bearer(issuer.token())
    const caller = { by: 'authenticate', caller: 'billing', keyId: issuer.kid }
    await auth.authenticate(headers, { permissions: 'orders:read', singleUse: memoryStore() })
    await auth.authenticate(headers, { permissions: 'orders:delete' })
    expect(events).toEqual([
      { outcome: 'accepted', ...caller },
      {
        outcome: 'refused',
        reason: 'permission_missing',
        status: 403,
        permission: 'orders:delete',
        ...caller,
      },
    ])
  })

  it('reports the id of a Node request', async () => {
    const events: DecisionEvent[] = []
    const auth = authFor(issuer.policy({ onDecision: (event) => events.push(event) }))
    await auth.authenticate({ rawHeaders: [], headers: {}, id: 'request-7' } as HeadersInput)
    expect(events).toMatchObject([{ reason: 'credentials_missing', requestId: 'request-7' }])
  })

  it('is undecided while the key set or the store is unreachable', async () => {
    const own = await createTestIssuer()
    onTestFinished(() => own.close())
    own.down()
    const answer = await authFor(own.policy()).authenticate(bearer(own.token()))
    expect(answer).toMatchObject({
      outcome: 'undecided',
      reason: 'key_set_unavailable',
      status: 503,
      headers: { 'retry-after': '5' },
    })
    const singleUse: SingleUseStore = { consume: () => Promise.reject(new Error('down')) }
    const consumed = await authFor(issuer.policy()).authenticate(bearer(issuer.token()), {
      singleUse,
    })
    expect(reasonOf(consumed)).toBe('store_unavailable')
  })
})

describe('the headers of authenticate', () => {
  const auth = serviceAuth(issuer.policy())
  afterAll(() => auth.close())
  const token = issuer.token()
  const good = `Bearer ${token}`

  it.each<[string, HeadersInput]>([
    ['a Node request', { rawHeaders: ['Host', 'x', 'AUTHORIZATION', good] }],
    ['a Headers', new Headers({ authorization: good })],
    ['an object', { authorization: good }],
    ['an object in another case', { Authorization: good }],
    ['an object with a list', { authorization: [good] }],
    ['an object without a prototype', Object.assign(Object.create(null), { authorization: good })],
    [
      'an object with a header named rawHeaders',
      { rawHeaders: ['authorization', 'x'], authorization: good },
    ],
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
    ['a list', { authorization: [good, good] }, 'repeated'],
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
    ['null', null],
    ['text', good],
    ['a list', ['authorization', good]],
    ['a number as value', { authorization: 5 }],
    ['null as value', { authorization: null }],
    ['a nested list', { authorization: [[good]] }],
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
    ['URLSearchParams', new URLSearchParams({ authorization: good })],
    ['a Date', new Date()],
    ['raw headers that are no text', { rawHeaders: ['authorization', Buffer.from(good)] }],
  ])('reject with wrong_wiring for %s', async (_, headers, options) => {
    const call = auth.authenticate(headers as HeadersInput, options as object)
    await expect(call).rejects.toMatchObject({ name: 'ServiceAuthError', code: 'wrong_wiring' })
  })

  it('reject with internal if a clock fails, and the event channel gets nothing', async () => {
    const broken = authFor(
      issuer.policy({
        clock: () => {
          throw new Error('no time')
        },
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

async function serverWith(listener: Parameters<typeof createServer>[1]) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port }
}
