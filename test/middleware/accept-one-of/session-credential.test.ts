import type { Application, RequestHandler } from 'express'
import {
  acceptOneOf,
  type DenylistOption,
  ServiceAuthError,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'
import { describe, expect, it, vi } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { collectEvents } from '../../support/observe/channel-events.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { startBehind, startReceiver } from '../../support/receiver/receiver.js'
import { INVALID_TOKEN, UNAVAILABLE } from '../../support/receiver/refusal-bytes.js'
import { knowToken } from '../../support/secret-search/index.js'
import { ManualDenylist } from '../../support/stores/manual-denylist.js'
import { throwing } from '../../support/throwing.js'

const session = { getHandle: () => 'handle' }
const verify: RequestHandler = (request, _response, next) => {
  Object.assign(request, { session })
  next()
}
const tokenOf = (header: Readonly<Record<string, unknown>> = {}): string =>
  issuer.token({}, { version: '5', ...header })
const bearer = (token: string) => ({ headers: [`Authorization: Bearer ${token}`] })

describe.each(EXPRESS_MAJORS)('sessionCredential, on $major', ({ express }) => {
  async function open(options: Parameters<typeof sessionCredential>[1], verifier = vi.fn(verify)) {
    const told = collectEvents('decision')
    const gate = acceptOneOf([{ name: 'user', ...sessionCredential(verifier, options) }])
    const receiver = await startBehind(express, gate)
    return { receiver, told, verifier, raw: receiver.raw }
  }

  const denied = {
    outcome: 'refused',
    reason: 'key_denied',
    status: 401,
    by: 'acceptOneOf',
    credential: 'user',
  }

  it('refuses sessions of keys on a fixed denylist, whoever has signed them', async () => {
    const { raw, told, verifier } = await open({ denylist: { keys: [issuer.kid, 'd-1'] } })
    for (const token of [tokenOf(), tokenOf({ kid: 'd-1' })]) {
      expect(await raw(bearer(token))).toBe(INVALID_TOKEN)
      expect(await raw({ headers: [`Cookie: sAccessToken=${token}`] })).toBe(INVALID_TOKEN)
    }
    expect(told).toEqual([denied, denied, denied, denied])
    expect(verifier).not.toHaveBeenCalled()
    expect(await raw(bearer(tokenOf({ kid: 'd-2' })))).toContain(' 200 OK')
  })

  it('asks a live denylist for each session, of its issuer', async () => {
    const list = new ManualDenylist()
    const { raw, told } = await open({ denylist: list, issuer: issuer.url })
    expect(await raw(bearer(tokenOf()))).toContain(' 200 OK')
    list.deny('keys', issuer.kid)
    expect(await raw(bearer(tokenOf()))).toBe(INVALID_TOKEN)
    list.allow('keys', issuer.kid)
    expect(await raw(bearer(tokenOf()))).toContain(' 200 OK')
    list.isKnown = false
    expect(await raw(bearer(tokenOf()))).toBe(UNAVAILABLE)
    const undecided = {
      ...denied,
      outcome: 'undecided',
      reason: 'denylist_unavailable',
      status: 503,
    }
    expect(told.slice(1)).toEqual([
      denied,
      expect.objectContaining({ outcome: 'accepted' }),
      undecided,
    ])
    // Once when it was made.
    expect(list.asked).toEqual(Array(5).fill(issuer.url))
  })

  it('takes nothing but keys from a denylist', async () => {
    const fixed = { callers: ['billing'], tokenIds: ['x'], issuedBefore: 9_999_999_999 }
    const list = new ManualDenylist()
    list.deny('callers', 'billing')
    list.issuedBefore = 9_999_999_999
    const { raw } = await open({ denylist: [fixed, list], issuer: issuer.url })
    expect(await raw(bearer(tokenOf()))).toContain(' 200 OK')
  })

  it('refuses a session without a key id where keys are denied, and leaves it to its verifier otherwise', async () => {
    const tokens = [undefined, null, 7, ['d-1']].map((kid) => {
      const header = Buffer.from(JSON.stringify({ version: '5', kid })).toString('base64url')
      const token = [header, ...tokenOf().split('.').slice(1)].join('.')
      knowToken(token)
      return token
    })
    const options: DenylistOption[] = [{ keys: ['d-1'] }, new ManualDenylist()]
    for (const denylist of options) {
      const { raw, told } = await open({ denylist, issuer: issuer.url })
      for (const token of tokens) expect(await raw(bearer(token))).toBe(INVALID_TOKEN)
      expect(told).toMatchObject(tokens.map(() => ({ reason: 'session_token_malformed' })))
    }
    const { raw } = await open({ denylist: { callers: ['x'] } })
    for (const token of tokens) expect(await raw(bearer(token))).toContain(' 200 OK')
  })

  it('reports a live denylist that fails as a fault', async () => {
    const list = new ManualDenylist()
    const { receiver, verifier } = await open({ denylist: list, issuer: issuer.url })
    const fails = [
      throwing(new Error('no')),
      () => ({}) as never,
      (() => Promise.reject(new Error('no'))) as never,
    ]
    for (const fail of fails) {
      list.lists = fail
      await receiver.raw(bearer(tokenOf()))
      expect(receiver.errors.at(-1)).toMatchObject({ name: 'ServiceAuthError', code: 'internal' })
    }
    expect(receiver.errors).toHaveLength(fails.length)
    expect(verifier).not.toHaveBeenCalled()
  })

  it('fails where its verifier rejects, also once that has called next', async () => {
    const fault = new Error('no')
    const verifiers: RequestHandler[] = [
      () => Promise.reject(fault),
      (request, response, next) => {
        verify(request, response, next)
        return Promise.reject(fault)
      },
    ]
    for (const verifier of verifiers) {
      const { receiver } = await open({}, vi.fn(verifier))
      expect(await receiver.raw(bearer(tokenOf()))).toContain(' 599 ')
      expect(receiver.errors).toMatchObject([{ code: 'internal', cause: fault }])
    }
  })

  it('refuses nobody where it is used to authorize', async () => {
    const refusing = sessionCredential(verify, { denylist: { keys: [issuer.kid] } })
    const user = { name: 'user', ...sessionCredential(verify), authorize: [refusing.verify] }
    const mount = (app: Pick<Application, 'use'>) => app.use(acceptOneOf([user]))
    const receiver = await startReceiver({ express, mount })
    expect(await receiver.raw(bearer(tokenOf()))).toContain(' 599 ')
    expect(receiver.errors).toMatchObject([{ code: 'wrong_wiring' }])
  })

  it('reads the cookie of the name that is given', async () => {
    const { raw } = await open({ cookie: 'mySession' })
    expect(await raw({ headers: [`Cookie: mySession=${tokenOf()}`] })).toContain(' 200 OK')
    expect(await raw({ headers: [`Cookie: sAccessToken=${tokenOf()}`] })).toContain(
      'realm="service"\r\n',
    )
  })

  it.each([undefined, null, {}, 'text', { getHandle: 'x' }, { getHandle: undefined }])(
    'takes a session that is %j for nobody',
    async (left) => {
      const verifier = vi.fn<RequestHandler>((request, _response, next) => {
        Object.assign(request, { session: left })
        next()
      })
      const { raw, told } = await open({}, verifier)
      expect(await raw(bearer(tokenOf()))).toBe(INVALID_TOKEN)
      expect(told).toMatchObject([{ reason: 'identity_missing', credential: 'user' }])
    },
  )

  it('takes for the session what identity gives', async () => {
    const identity = vi.fn(() => 'user-1')
    const { raw } = await open({ identity })
    expect(await raw(bearer(tokenOf()))).toContain(' 200 OK')
    expect(identity).toHaveBeenCalledOnce()
  })

  it('passes nobody where its verify stands alone', async () => {
    const credential = sessionCredential(verify)
    const receiver = await startBehind(express, credential.verify)
    for (const request of [{}, bearer(issuer.token()), { headers: ['Cookie: sAccessToken=x'] }]) {
      await receiver.raw(request)
      expect(receiver.errors.at(-1)).toMatchObject({ code: 'wrong_wiring' })
    }
    expect(receiver.handled).toBe(0)
  })

  it('reports a request whose headers were changed as a fault', async () => {
    const { verifier } = await open({})
    const gate = acceptOneOf([{ name: 'user', ...sessionCredential(verifier) }])
    const receiver = await startBehind(
      express,
      (request, _response, next) => {
        request.headers.authorization = `Bearer ${tokenOf()}`
        next()
      },
      gate,
    )
    for (const request of [{}, bearer(tokenOf({ kid: 'd-9' }))]) await receiver.raw(request)
    expect(receiver.errors).toMatchObject([{ code: 'wrong_wiring' }, { code: 'wrong_wiring' }])
    expect(verifier).not.toHaveBeenCalled()
  })
})

describe('sessionCredential', () => {
  it.each<[object | undefined, RegExp]>([
    [{ cookie: '' }, /cookie must be the name of a cookie/],
    [{ cookie: 'a b' }, /cookie must be the name of a cookie/],
    [{ cookie: 'a%62' }, /cookie must be the name of a cookie/],
    [{ cookie: 7 }, /cookie must be the name of a cookie/],
    [{ identity: 'user' }, /identity must be a function/],
    [{ denylist: { keys: 'd-1' } }, /denylist\.keys must be a list/],
    [{ denylist: [] }, /denylist must hold at least one/],
    [{ denylist: new ManualDenylist() }, /issuer is required with a live denylist/],
    [{ denylist: new ManualDenylist(), issuer: '' }, /issuer must be a non-empty string/],
    [{ cookies: 'a' }, /cookies is not an option/],
  ])('takes the options %j for a mistake', (options, message) => {
    const make = () => sessionCredential(verify, options as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  it('takes no verifier for a mistake', () => {
    expect(() => sessionCredential(undefined as never)).toThrow(TypeError)
    expect(() => sessionCredential({} as never)).toThrow(TypeError)
  })
})

describe('serviceCredential', () => {
  it.each([
    undefined,
    null,
    {},
    verify,
    Object.assign(() => {}, { ready() {}, health() {}, close() {} }),
  ])('takes only what serviceAuth returns', (auth) => {
    expect(() => serviceCredential(auth as never)).toThrow(TypeError)
    expect(() => serviceCredential(auth as never)).not.toThrow(ServiceAuthError)
  })
})
