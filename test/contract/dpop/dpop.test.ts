import { memoryStore } from 'express-service-auth'
import { hostileProofs } from 'express-service-auth/testing'
import { calculateJwkThumbprint } from 'jose'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createProofKey } from '../../../src/testing/issuer/bound-token.js'
import { createOAuth2TestIssuer } from '../../support/issuer/test-issuer.js'
import { authFor } from '../../support/receiver/receiver.js'
import {
  BASE_URL,
  bearer,
  bound,
  clock,
  DPOP,
  INVALID,
  issuer,
  open,
  openAuth,
  START,
  setClock,
  WAYS,
} from './dpop-kit.js'

const oauth2Issuer = await createOAuth2TestIssuer({ clock })
afterAll(() => oauth2Issuer.close())

function newStore() {
  const store = memoryStore()
  onTestFinished(() => store.close())
  return store
}

describe.each(WAYS)('a token bound to a key, through $entry', (way) => {
  it('is accepted with a proof of its key, whatever the case of the scheme', async () => {
    const ask = await open(way)
    const { key, token, proof } = bound()
    const request = { htm: 'POST', htu: `${BASE_URL}/orders` }
    for (const scheme of ['DPoP', 'dpop', 'DPOP']) {
      const headers = ['authorization', `${scheme} ${token}`, 'dpop', proof(request)]
      const answer = await ask({ method: 'POST', target: '/orders?page=2', headers })
      expect(answer).toMatchObject({
        status: 200,
        event: { confirmation: 'dpop', caller: 'billing' },
        confirmation: { kind: 'dpop', thumbprint: key.thumbprint },
      })
    }
  })

  it.each([
    [{ max: 10 }, false],
    [{ max: 10 }, true],
    [false, false],
    [false, true],
  ] as const)(
    'is refused without a proof and as a bearer token, cache: %j, used once: %s',
    async (...row) => {
      const [tokenCache, isUsedOnce] = row
      const ask = await open(way, { tokenCache }, isUsedOnce ? newStore() : undefined)
      const { token, proof, headers: good } = bound()
      const refuse = async (): Promise<void> => {
        const withProof = [...bearer(token), 'DPoP', proof()]
        for (const headers of [bearer(token), withProof, ['Authorization', `DPoP ${token}`]]) {
          const answer = await ask({ headers })
          expect(answer).toMatchObject({ status: 401, challenge: INVALID })
          expect(answer.event).toMatchObject({ reason: 'proof_missing', caller: 'billing' })
        }
      }
      await refuse()
      expect(await ask({ headers: good() })).toMatchObject({ status: 200 })
      await refuse()
    },
  )

  it('is judged for each of the requests that share its verification', async () => {
    const ask = await open(way)
    const { token, headers: good } = bound()
    const other = good({ htu: `${BASE_URL}/x` })
    const sent = [good(), bearer(token), other, good(), bearer(token)]
    const answers = await Promise.all(sent.map((headers) => ask({ headers })))
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 200, 401])
  })

  it('is refused where proofs cannot be checked, whoever the caller is', async () => {
    const mtls = () => undefined
    for (const senderConstraint of [undefined, { mtls }, { mtls, required: true }]) {
      const ask = await open(way, { senderConstraint })
      const { token, headers: good } = bound({ sub: 'stranger' })
      for (const headers of [good(), bearer(token)]) {
        expect(await ask({ headers })).toMatchObject({
          status: 401,
          challenge: 'Bearer realm="service", error="invalid_token"',
          event: { reason: 'confirmation_unsupported', claim: 'cnf', keyId: issuer.kid },
        })
      }
    }
  })

  it('is refused with two bindings, none or one of another type', async () => {
    const ask = await open(way, { senderConstraint: { ...DPOP, mtls: () => undefined } })
    const key = createProofKey()
    const { thumbprint: jkt } = key
    const two = [
      { jkt, 'x5t#S256': 'x' },
      { jkt, 'x5t#S256': null },
    ]
    const odd = [
      { jkt: [jkt] },
      { jkt: null },
      {},
      null,
      jkt,
      [jkt],
      { jwk: key.jwk },
      { JKT: jkt },
    ]
    for (const cnf of [...two, ...odd]) {
      const { token, headers: good } = bound({ cnf }, { key })
      for (const headers of [good(), bearer(token)]) {
        expect(await ask({ headers }), JSON.stringify(cnf)).toMatchObject({
          status: 401,
          event: { reason: 'confirmation_unsupported' },
        })
      }
    }
    const more = bound({ cnf: { jkt, more: { x: 1 } } }, { key })
    expect(await ask({ headers: more.headers() })).toMatchObject({ status: 200 })
  })

  it('sends a token of a certificate with DPoP nowhere', async () => {
    const ask = await open(way, { senderConstraint: { ...DPOP, mtls: () => Buffer.of(0x30, 0) } })
    const token = issuer.token({ cnf: { 'x5t#S256': 'x' } })
    expect(await ask({ headers: ['Authorization', `DPoP ${token}`] })).toMatchObject({
      status: 401,
      event: { reason: 'confirmation_unsupported' },
    })
  })

  it('is required, or an unbound token goes as Bearer only', async () => {
    const lax = await open(way)
    const { token, headers: good } = bound({ cnf: undefined })
    expect(await lax({ headers: bearer(token) })).toMatchObject({
      status: 200,
      event: { confirmation: 'none' },
    })
    const asDpop = good()
    for (const ask of [lax, await open(way, { senderConstraint: undefined })]) {
      for (const headers of [asDpop, asDpop.slice(0, 2)]) {
        expect(await ask({ headers })).toMatchObject({
          status: 401,
          event: { reason: 'confirmation_missing', keyId: issuer.kid },
        })
      }
    }
    const strict = await open(way, { senderConstraint: { ...DPOP, required: true } })
    for (const headers of [bearer(token), asDpop]) {
      expect(await strict({ headers })).toMatchObject({
        status: 401,
        challenge: 'DPoP algs="ES256", error="invalid_token"',
        event: { reason: 'confirmation_missing', claim: 'cnf' },
      })
    }
  })

  it('is the 401 of an invalid token before any 403', async () => {
    const ask = await open(way, { permissions: ['orders:read'] })
    for (const claims of [{ sub: 'stranger' }, { permissions: [] }]) {
      const { headers } = bound(claims)
      expect(await ask({ headers: headers({ htm: 'PUT' }) })).toMatchObject({
        status: 401,
        event: { reason: 'proof_invalid', member: 'htm', keyId: issuer.kid },
      })
      expect(await ask({ headers: headers() })).toMatchObject({
        status: 403,
        challenge: INVALID.replaceAll('invalid_token', 'insufficient_scope'),
      })
    }
  })

  it('has 60 s after its proof and 30 s before, whatever the tolerance is', async () => {
    for (const clockToleranceSeconds of [0, 60]) {
      const ask = await open(way, { clockToleranceSeconds })
      const late = bound().headers()
      // The token was issued 100 s before; its proof is of then.
      const early = bound({ iat: START / 1000 - 100 }).headers()
      for (const [headers, ms, status] of [
        [late, 0, 200],
        [late, 60_000, 200],
        [late, 60_001, 401],
        [early, -30_000, 200],
        [early, -30_001, 401],
      ] as const) {
        setClock(START + ms)
        expect((await ask({ headers })).status).toBe(status)
      }
      setClock(START)
    }
  })

  it('is refused with a key that is no point of the curve, although it is bound to it', async () => {
    const ask = await open(way)
    const key = createProofKey()
    const jwk = { ...key.jwk, y: key.jwk.x }
    const { headers } = bound({ cnf: { jkt: await calculateJwkThumbprint(jwk) } }, { key })
    expect(await ask({ headers: headers({}, { jwk }) })).toMatchObject({
      status: 401,
      event: { reason: 'proof_invalid', member: 'jwk' },
    })
  })

  it('takes what a proof and its key have more', async () => {
    const ask = await open(way)
    const { key, headers, proof } = bound()
    const jwk = { ...key.jwk, use: 'sig', alg: 'ES256', kid: 'x', ext: true, key_ops: ['verify'] }
    const more = { nonce: 'x', exp: 1, iat: START / 1000 + 0.5 }
    const accepted = [
      headers(more, { jwk, kid: 'x', b64: true }),
      ...['j', 'j'.repeat(256)].map((jti) => headers({ jti })),
    ]
    for (const each of accepted) expect(await ask({ headers: each })).toMatchObject({ status: 200 })
    // No segment in base64url has a length of 4n + 1, so the payload varies, too.
    const padded = (of: number, rest: number) =>
      [{ more: 'x'.repeat(rest) }, { more: 'x'.repeat(of) }] as const
    const room = Math.floor(((4096 - proof(...padded(0, 0)).length) * 3) / 4)
    const drafts = Array.from({ length: 24 }, (_, index) =>
      headers(...padded(room - 3 + (index % 6), Math.floor(index / 6))),
    )
    for (const [length, status] of [
      [4096, 200],
      [4097, 401],
    ] as const) {
      const draft = drafts.find((each) => each.at(-1)?.length === length)
      expect(await ask({ headers: draft ?? [] })).toMatchObject({ status })
    }
  })

  it('serves many writes, each proof once, on all instances', async () => {
    const store = newStore()
    const ask = await open(way, {}, store)
    const elsewhere = await open(way, {}, store)
    const { headers: fresh } = bound({ jti: undefined })
    for (let write = 0; write < 3; write++) {
      const headers = fresh()
      expect(await ask({ headers })).toMatchObject({ status: 200, event: { confirmation: 'dpop' } })
      for (const again of [ask, elsewhere]) {
        expect(await again({ headers })).toMatchObject({
          status: 401,
          challenge: INVALID,
          event: { reason: 'token_replayed', claim: 'jti', caller: 'billing' },
        })
      }
    }
    // At the last moment of a proof, too.
    const last = fresh()
    setClock(START + 60_000)
    expect(await ask({ headers: last })).toMatchObject({ status: 200 })
    expect(await elsewhere({ headers: last })).toMatchObject({ status: 401 })
    // Another key may have the same jti, and another token of the same key not.
    setClock(START)
    const [one, other] = [createProofKey(), createProofKey()]
    const statuses = []
    for (const key of [one, other, one]) {
      const headers = bound({}, { key }).headers({ jti: 'the-same' })
      statuses.push((await ask({ headers })).status)
    }
    expect(statuses).toEqual([200, 200, 401])
  })

  it('remembers a proof until iat plus 60 s, and a minute or more for drift', async () => {
    const ttls: number[] = []
    const consume = async (_id: string, ttlMs: number): Promise<boolean> => ttls.push(ttlMs) > 0
    const ask = await open(way, {}, { consume })
    const headers = bound().headers()
    for (const ageMs of [0, 20_000]) {
      setClock(START + ageMs)
      expect(await ask({ headers })).toMatchObject({ status: 200 })
      const beyond = Number(ttls.at(-1)) - (60_000 - ageMs)
      expect(beyond).toBeGreaterThanOrEqual(60_000)
      expect(beyond).toBeLessThanOrEqual(900_000)
    }
  })

  it('refuses every hostile proof', async () => {
    // One way suffices for the tokens of the other scheme.
    const of = way.entry === 'authenticate' ? oauth2Issuer : issuer
    const store = newStore()
    const openOne = () => openAuth(way, authFor(of.policy({ senderConstraint: DPOP })), store)
    const [here, elsewhere] = [await openOne(), await openOne()]
    const cases = hostileProofs(of)
    expect(cases.length).toBeGreaterThanOrEqual(120)
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    const members = new Set<unknown>()
    for (const each of cases) {
      const { name, replays, expect: status } = each
      if (replays !== undefined) {
        const first = replays === 'here' ? here : elsewhere
        expect(await first(each), name).toMatchObject({ status: 200 })
      }
      const answer = await here(each)
      expect([name, answer.status]).toEqual([name, status])
      expect(answer.challenge, name).toBe(INVALID)
      const { reason, member } = answer.event
      if (reason === 'proof_invalid') members.add(member)
      else if (!/^(?:Authorization|DPoP: (?:no|an unbound)|a proof that)/.test(name))
        expect.unreachable(`${name}: ${reason}`)
      const { keyId: _key, caller: _caller, ...told } = answer.event
      expect(JSON.stringify(told).length).toBeLessThan(150)
    }
    const all = 'form field typ alg crit jwk signature htm htu iat jti ath'.split(' ')
    expect([...members].sort()).toEqual(all.sort())
  })
})

describe('authenticate', () => {
  const open = (senderConstraint: object | undefined = DPOP) =>
    authFor(issuer.policy({ senderConstraint }))

  it('does not consume a proof that lacks a permission', async () => {
    const auth = open({ ...DPOP, required: true })
    const singleUse = newStore()
    const rawHeaders = bound().headers()
    const ask = (permissions: string) =>
      auth.authenticate({ rawHeaders }, { method: 'GET', url: '/', singleUse, permissions })
    expect(await ask('everything')).toMatchObject({
      status: 403,
      headers: { 'www-authenticate': 'DPoP algs="ES256", error="insufficient_scope"' },
    })
    expect(await ask('orders:read')).toMatchObject({ outcome: 'accepted' })
    expect(await ask('orders:read')).toMatchObject({ status: 401, reason: 'token_replayed' })
    expect(await ask('everything')).toMatchObject({ status: 403 })
  })

  it('rejects a token that is bound to a key without method and url, and a wrong one of them', async () => {
    const auth = open()
    const rawHeaders = bound().headers()
    const ask = (options?: object) => auth.authenticate({ rawHeaders }, options)
    const wrong = [undefined, { method: 'GET' }, { url: '/' }, { method: '', url: '/' }]
    const urls = [5, '', 'orders', null, 'mailto:x', '?x'].map((url) => ({ method: 'GET', url }))
    for (const options of [...wrong, ...urls, { method: 5, url: '/' }]) {
      const asked = ask(options)
      await expect(asked, JSON.stringify(options)).rejects.toMatchObject({ code: 'wrong_wiring' })
    }
    for (const url of ['/', '/?x', 'http://anywhere.test/', 'http://anywhere.test']) {
      expect(await ask({ method: 'GET', url })).toMatchObject({ outcome: 'accepted' })
    }
    const unbound = { authorization: `Bearer ${issuer.token()}` }
    expect(await auth.authenticate(unbound)).toMatchObject({ outcome: 'accepted' })
    // What is refused anyway needs neither.
    const expired = { authorization: `DPoP ${bound({ exp: 5 }).token}` }
    expect(await auth.authenticate(expired)).toMatchObject({ reason: 'token_expired' })
    const without = authFor(issuer.policy())
    expect(await without.authenticate({ rawHeaders })).toMatchObject({
      reason: 'confirmation_unsupported',
    })
  })

  it('sees one proof or two in every form of headers', async () => {
    const auth = open()
    const { token, proof: fresh } = bound()
    const authorization = `DPoP ${token}`
    const both = new Headers({ authorization, dpop: fresh() })
    both.append('DPoP', fresh())
    const own = { authorization: { value: authorization, enumerable: true } }
    const odd = JSON.parse('{"__proto__":"x","constructor":["y"],"toString":"z"}')
    const raw = ['authorization', authorization, 'DPoP', fresh()]
    for (const [headers, outcome] of [
      [new Headers({ authorization, dpop: fresh() }), 'accepted'],
      [both, 'proof_invalid'],
      [{ Authorization: authorization, DPoP: fresh() }, 'accepted'],
      [{ authorization, dpop: [fresh()] }, 'accepted'],
      [{ authorization, dpop: [fresh(), fresh()] }, 'proof_invalid'],
      [{ authorization, dpop: fresh(), DPoP: fresh() }, 'proof_invalid'],
      [{ authorization, dpop: [] }, 'proof_missing'],
      [{ authorization, dpop: undefined }, 'proof_missing'],
      [Object.create({ dpop: fresh() }, own), 'proof_missing'],
      [{ authorization, dpop: fresh(), ...odd }, 'accepted'],
      [{ rawHeaders: raw }, 'accepted'],
      [{ rawHeaders: [...raw, 'dpop', fresh()] }, 'proof_invalid'],
    ] as const) {
      const answer = await auth.authenticate(headers, { method: 'GET', url: '/' })
      expect(answer.outcome === 'accepted' ? 'accepted' : answer.reason).toBe(outcome)
    }
  })
})
