import {
  type DecisionEvent,
  type Denylist,
  type DenylistOption,
  type LiveDenylist,
  ServiceAuthError,
} from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import { expectOwnError } from '../support/receiver/own-error.js'
import { authFor, startBehind } from '../support/receiver/receiver.js'
import {
  FORBIDDEN,
  INVALID_TOKEN,
  UNAVAILABLE,
  withoutBody,
} from '../support/receiver/refusal-bytes.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'
import { throwing } from '../support/throwing.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const now = (): number => Math.floor(Date.now() / 1000)
const bearer = (token: string): string => `Bearer ${token}`

/** Each way to deny `issuer.token({ jti: 'bad' })`, with what a caller gets. */
const WAYS: readonly (readonly [string, Denylist, string])[] = [
  ['key_denied', { keys: [issuer.kid] }, INVALID_TOKEN],
  ['token_denied', { tokenIds: ['bad'] }, INVALID_TOKEN],
  ['token_issued_too_early', { issuedBefore: now() + 3600 }, INVALID_TOKEN],
  ['caller_denied', { callers: ['billing'] }, FORBIDDEN],
]

function fill(list: ManualDenylist, denied: Denylist): void {
  for (const kind of ['keys', 'callers', 'tokenIds'] as const) {
    for (const value of denied[kind] ?? []) list.deny(kind, value)
  }
  list.issuedBefore = denied.issuedBefore
}

describe.each(EXPRESS_MAJORS)('a live denylist, on $major', ({ express }) => {
  async function start(denylist: DenylistOption, policy = {}) {
    const events: DecisionEvent[] = []
    const onDecision = (event: DecisionEvent): number => events.push(event)
    const auth = authFor(issuer.policy({ denylist, onDecision, ...policy }))
    const receiver = await startBehind(express, auth)
    return { receiver, auth, events }
  }

  it.each(WAYS)(
    'refuses as a fixed one does, until it is allowed again: %s',
    async (reason, denied, bytes) => {
      const fixed = await start(denied)
      await fixed.auth.ready()
      const token = issuer.token({ jti: 'bad' })
      expect(await fixed.receiver.rawWith(bearer(token))).toBe(bytes)
      for (const tokenCache of [{ max: 10 }, false] as const) {
        const list = new ManualDenylist()
        const { receiver, events } = await start(list, { tokenCache })
        expect((await receiver.call(token)).status).toBe(200)
        fill(list, denied)
        for (let turn = 0; turn < 3; turn += 1) {
          expect(await receiver.rawWith(bearer(token))).toBe(bytes)
        }
        const another = issuer.token({ jti: 'bad', iat: now() - 1 })
        expect(await receiver.rawWith(bearer(another))).toBe(bytes)
        expect(receiver.handled).toBe(1)
        expect(events[0]).toMatchObject({ outcome: 'accepted' })
        expect(fixed.events[0]).toMatchObject({ reason })
        for (const event of events.slice(1)) expect(event).toEqual(fixed.events[0])
        for (const kind of ['keys', 'callers', 'tokenIds'] as const) {
          for (const value of denied[kind] ?? []) list.allow(kind, value)
        }
        list.issuedBefore = undefined
        expect((await receiver.call(token)).status).toBe(200)
      }
    },
  )

  it('that is unknown is the 503, for remembered tokens too, until it is known', async () => {
    const list = new ManualDenylist()
    const { receiver, events } = await start(list)
    const token = issuer.token()
    expect((await receiver.call(token)).status).toBe(200)
    list.isKnown = false
    expect(await receiver.rawWith(bearer(token))).toBe(UNAVAILABLE)
    expect(await receiver.rawWith(bearer(issuer.token()))).toBe(UNAVAILABLE)
    const head = { method: 'HEAD', headers: [`Authorization: ${bearer(token)}`] }
    expect(await receiver.raw(head)).toBe(withoutBody(UNAVAILABLE))
    expect(receiver.handled).toBe(1)
    expect(receiver.errors).toEqual([])
    for (const event of events.slice(1)) {
      expect(event).toEqual({
        outcome: 'undecided',
        reason: 'denylist_unavailable',
        status: 503,
        by: 'serviceAuth',
        keyId: issuer.kid,
      })
    }
    list.isKnown = true
    expect((await receiver.call(token)).status).toBe(200)
  })

  it('is asked after signature and claims, and once a request for a remembered token', async () => {
    const list = new ManualDenylist()
    list.isKnown = false
    const { receiver } = await start(list)
    const wrong = [
      'x',
      `${issuer.token().slice(0, -6)}AAAAAA`,
      issuer.token({ exp: 1 }),
      issuer.token({ aud: 'payments' }),
      issuer.token({}, { kid: issuer.staticKid }),
    ]
    list.asked.length = 0
    for (const token of wrong) expect(await receiver.rawWith(bearer(token))).toBe(INVALID_TOKEN)
    expect(list.asked).toEqual([])
    list.isKnown = true
    const token = issuer.token()
    await receiver.call(token)
    list.asked.length = 0
    await receiver.call(token)
    expect(list.asked).toEqual([issuer.url])
  })

  it('answers the 401 before the 403, and the 503 only where nothing is denied', async () => {
    const [one, other] = [new ManualDenylist(), new ManualDenylist()]
    const { receiver } = await start([one, other, { callers: ['fixed'] }], {
      callers: ['billing', 'fixed'],
    })
    const ask = (claims: object): Promise<string> =>
      receiver.rawWith(bearer(issuer.token({ ...claims })))
    one.deny('callers', 'billing')
    other.deny('tokenIds', 'bad')
    expect(await ask({ jti: 'bad' })).toBe(INVALID_TOKEN)
    expect(await ask({ jti: 'bad', sub: 'stranger' })).toBe(INVALID_TOKEN)
    expect(await ask({ sub: 'stranger' })).toBe(FORBIDDEN)
    one.isKnown = false
    expect(await ask({ jti: 'bad' })).toBe(INVALID_TOKEN)
    expect(await ask({ sub: 'fixed' })).toBe(FORBIDDEN)
    expect(await ask({ sub: 'stranger' })).toBe(UNAVAILABLE)
    expect(await ask({})).toBe(UNAVAILABLE)
    one.isKnown = true
    other.isKnown = false
    expect(await ask({})).toBe(FORBIDDEN)
    expect(receiver.handled).toBe(0)
  })

  const odd = Object.assign(new Error('odd'), { status: 401, statusCode: 200, headers: { a: 'b' } })
  it.each<[string, () => unknown]>([
    ['throws', throwing(odd)],
    ['throws what says it is a 503', throwing(new ServiceAuthError('unavailable', 'x'))],
    ['rejects', () => Promise.reject(odd)],
    ['returns text', () => 'all'],
  ])('that %s is next(error), remembered or not, and whatever others deny', async (_, broken) => {
    const [list, other] = [new ManualDenylist(), new ManualDenylist()]
    const { receiver } = await start([other, list])
    const token = issuer.token()
    expect((await receiver.call(token)).status).toBe(200)
    list.lists = broken as LiveDenylist['lists']
    for (const sent of [token, issuer.token(), issuer.token({ sub: 'stranger' })]) {
      expect((await receiver.call(sent)).status).toBe(FAULT_STATUS)
    }
    other.deny('keys', issuer.kid)
    expect((await receiver.call(token)).status).toBe(FAULT_STATUS)
    expect([receiver.handled, receiver.errors.length]).toEqual([1, 4])
    const fault = { code: 'internal', message: expect.stringMatching(/denylist/) }
    for (const error of receiver.errors) expectOwnError(error, fault)
  })

  it('that throws is the cause of the error', async () => {
    const list = new ManualDenylist()
    const { receiver } = await start(list)
    list.lists = () => {
      throw odd
    }
    await receiver.call(issuer.token())
    expect(receiver.errors).toMatchObject([{ code: 'internal', cause: odd }])
  })
})
