import express5, { type Request } from 'express'
import {
  acceptOneOf,
  type DecisionEvent,
  memoryStore,
  requirePermissions,
  requireSingleUse,
  type ServiceAuth,
  type ServiceAuthPolicy,
  type ServiceChoice,
  type SingleUseStore,
  serviceAuth,
  serviceCredential,
  serviceOf,
  sessionCredential,
} from 'express-service-auth'
import { type HostileProof, hostileProofs } from 'express-service-auth/testing'
import { calculateJwkThumbprint, decodeJwt } from 'jose'
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import {
  createProof,
  createProofKey,
  proofHeaderOf,
  proofPayloadOf,
} from '../../src/testing/issuer/bound-token.js'
import { compactToken, es256 } from '../../src/testing/issuer/compact-token.js'
import { createOAuth2TestIssuer, createTestIssuer } from '../support/issuer/test-issuer.js'
import { rawRequest } from '../support/network/raw-exchange.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'

const START = 1_800_000_000_000
let now = START
const clock = (): number => now
beforeEach(() => {
  now = START
})
const issuer = await createTestIssuer({ clock })
const oauth2Issuer = await createOAuth2TestIssuer({ clock })
afterAll(() => Promise.all([issuer.close(), oauth2Issuer.close()]))

const BASE_URL = 'https://orders.test'
const DPOP = { dpop: { baseUrls: [BASE_URL] } }

interface Sent {
  readonly method?: string
  readonly target?: string
  readonly headers: readonly string[]
}

interface Answer {
  readonly status: number
  readonly challenge: string | undefined
  readonly event: Record<string, unknown>
  /** Of the accepted caller. */
  readonly confirmation?: unknown
}

/** A receiver that is asked in one of the ways. */
type Ask = (sent: Sent) => Promise<Answer>

interface Way {
  readonly name: string
  /** `store`: each route requires single use. */
  open(auth: ServiceAuth, events: DecisionEvent[], store?: SingleUseStore): Promise<Ask>
}

const linesOf = (headers: readonly string[]): string[] =>
  headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []))

function answerOf(bytes: string, events: readonly DecisionEvent[]): Answer {
  const fields = Array.from(bytes.matchAll(/^WWW-Authenticate: (.*)\r$/gim), ([, value]) => value)
  const challenge = fields.length < 2 ? fields[0] : fields.join(' and ')
  return { status: Number(bytes.slice(9, 12)), challenge, event: { ...events.at(-1) } }
}

const throughExpress = (name: string, express: ExpressModule): Way => ({
  name,
  async open(auth, events, store) {
    const { port } = await startReceiver({
      express,
      mount: (app) => app.use(auth, ...(store ? [requireSingleUse({ store })] : [])),
      handler: (req, res) => void res.json([serviceOf(req).confirmation]),
    })
    return async ({ method = 'GET', target = '/', headers }) => {
      const bytes = await rawRequest(port, { method, path: target, headers: linesOf(headers) })
      const answer = answerOf(bytes, events)
      const [confirmation] = JSON.parse(/\r\n\r\n(\[.*\])$/s.exec(bytes)?.[1] ?? '[]')
      return { ...answer, confirmation }
    }
  },
})

const throughAuthenticate: Way = {
  name: 'authenticate',
  async open(auth, events, singleUse) {
    return async ({ method = 'GET', target: url = '/', headers: rawHeaders }) => {
      const options = { method, url, ...(singleUse && { singleUse }) }
      const answer = await auth.authenticate({ rawHeaders }, options)
      const event = { ...events.at(-1) }
      if (answer.outcome === 'accepted') {
        const { confirmation } = answer.service
        return { status: 200, challenge: undefined, event, confirmation }
      }
      return { status: answer.status, challenge: answer.headers['www-authenticate'], event }
    }
  },
}

/** That Express 4 hands on the same method, target and headers is shown behind other middlewares. */
const WAYS: readonly Way[] = [throughExpress('Express 5', express5), throughAuthenticate]

async function open(way: Way, policy: Partial<ServiceAuthPolicy>, store?: SingleUseStore) {
  const events: DecisionEvent[] = []
  const onDecision = (event: DecisionEvent) => events.push(event)
  const auth = authFor(issuer.policy({ senderConstraint: DPOP, onDecision, ...policy }))
  await auth.ready()
  return way.open(auth, events, store)
}

const withProof = (token: string, proof: string): string[] => [
  ...['Authorization', `DPoP ${token}`],
  ...['DPoP', proof],
]
const bearer = (token: string): string[] => ['Authorization', `Bearer ${token}`]

/** Asks for a target with a proof of another spelling of its URL. */
async function expectOfHtu(way: Way, target: string, url: string, status: number): Promise<void> {
  const more = ['https://api.test/v1', 'HTTP://[2001:db8::1]', 'http://127.0.0.1:8080']
  const ask = await open(way, { senderConstraint: { dpop: { baseUrls: [BASE_URL, ...more] } } })
  const key = createProofKey()
  const token = issuer.token({ cnf: { jkt: key.thumbprint } })
  const facts = { token, method: 'GET', url, now: now / 1000 }
  const payload = { ...proofPayloadOf(facts), htu: url }
  const proof = compactToken(proofHeaderOf(key), payload, es256(key.privateKey))
  const answer = await ask({ target, headers: withProof(token, proof) })
  expect(answer.status).toBe(status)
  if (status === 401) expect(answer.event).toMatchObject({ reason: 'proof_invalid', member: 'htu' })
}

it.each([
  ['/', `${BASE_URL}`, 200],
  ['/', `${BASE_URL}/`, 200],
  ['/', 'HTTPS://ORDERS.test:443/', 200],
  ['/', 'https://orders.test:/', 200],
  ['/?a=1', `${BASE_URL}/?b=2#c`, 200],
  ['/a', `${BASE_URL}/a?`, 200],
  ['/a%2fb', `${BASE_URL}/a%2Fb`, 200],
  ['/%7Ea%2D', `${BASE_URL}/~a-`, 200],
  ['/~a', `${BASE_URL}/%7ea`, 200],
  ['/a/./b/../c', `${BASE_URL}/a/c`, 401],
  ['/export/%2e%2E/orders', `${BASE_URL}/orders`, 401],
  ['/a.', `${BASE_URL}/a.`, 200],
  ['/...', `${BASE_URL}/...`, 200],
  ['/a/c', `${BASE_URL}/x/%2E%2e/a/./c`, 200],
  ['/a/..', `${BASE_URL}/`, 401],
  ['/../a', `${BASE_URL}/a`, 401],
  ['/A', `${BASE_URL}/a`, 401],
  ['/a+b', `${BASE_URL}/a%2Bb`, 401],
  ['/a/b', `${BASE_URL}/a%2Fb`, 401],
  ['/a/', `${BASE_URL}/a`, 401],
  ['/a|b', `${BASE_URL}/a|b`, 200],
  ['/%C3%A9', `${BASE_URL}/%c3%a9`, 200],
  ['/a%', `${BASE_URL}/a%`, 401],
  ['/a%zz', `${BASE_URL}/a%zz`, 401],
  ['/a\\b', `${BASE_URL}/a\\b`, 401],
  ['/a%5Cb', `${BASE_URL}/a%5cb`, 200],
  ['/', 'https://api.test/v1/', 200],
  ['/orders', 'https://api.test/v1/orders', 200],
  ['/orders', 'https://api.test/orders', 401],
  ['/../orders', 'https://api.test/orders', 401],
  ['/', 'http://[2001:DB8::1]:80/', 200],
  ['/', 'http://[2001:db8:0::1]/', 401],
  ['/', 'http://127.0.0.1:8080/', 200],
  ['/', 'http://127.1:8080/', 401],
  ['/', 'http://0x7f000001:8080/', 401],
  ['/', 'https://orders.test:80/', 401],
  ['/', 'http://orders.test/', 401],
])('a proof for the target %s and the htu %s is %i', (...row) =>
  expectOfHtu(throughAuthenticate, ...row),
)

const INVALID =
  'Bearer realm="service", error="invalid_token", DPoP algs="ES256", error="invalid_token"'

describe.each(WAYS)('a token bound to a key, through $name', (way) => {
  it('is accepted with a proof of its key, whatever the case of the scheme', async () => {
    const ask = await open(way, {})
    const { token, proof } = issuer.boundToken()
    const { cnf } = decodeJwt<{ cnf: { jkt: string } }>(token)
    const request = { method: 'POST', url: `${BASE_URL}/orders?page=2` }
    for (const scheme of ['DPoP', 'dpop', 'DPOP']) {
      const headers = ['authorization', `${scheme} ${token}`, 'dpop', proof(request)]
      const answer = await ask({ method: 'POST', target: '/orders?page=2', headers })
      expect(answer).toMatchObject({
        status: 200,
        event: { confirmation: 'dpop', caller: 'billing' },
        confirmation: { kind: 'dpop', thumbprint: cnf.jkt },
      })
    }
  })

  it('is refused without a proof and as a bearer token, in every state of the cache', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    for (const [tokenCache, singleUse] of [
      [{ max: 10 }, undefined],
      [{ max: 10 }, store],
      [false, undefined],
      [false, store],
    ] as const) {
      const ask = await open(way, { tokenCache }, singleUse)
      const { token, proof } = issuer.boundToken()
      const good = () => proof({ method: 'GET', url: `${BASE_URL}/` })
      const refuse = async (): Promise<void> => {
        const wrong = [
          bearer(token),
          [...bearer(token), 'DPoP', good()],
          ['Authorization', `DPoP ${token}`],
        ]
        for (const headers of wrong) {
          const answer = await ask({ headers })
          expect(answer).toMatchObject({ status: 401, challenge: INVALID })
          expect(answer.event).toMatchObject({ reason: 'proof_missing', caller: 'billing' })
        }
      }
      await refuse()
      expect(await ask({ headers: withProof(token, good()) })).toMatchObject({ status: 200 })
      await refuse()
    }
  })

  it('is judged for each of the requests that share its verification', async () => {
    const ask = await open(way, {})
    const { token, proof } = issuer.boundToken()
    const good = () => withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
    const other = () => withProof(token, proof({ method: 'GET', url: `${BASE_URL}/x` }))
    const sent = [good(), bearer(token), other(), good(), bearer(token)]
    const answers = await Promise.all(sent.map((headers) => ask({ headers })))
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 200, 401])
  })

  it('is refused where proofs cannot be checked, whoever the caller is', async () => {
    const mtls = () => undefined
    for (const senderConstraint of [undefined, { mtls }, { mtls, required: true }]) {
      const ask = await open(way, { senderConstraint })
      const { token, proof } = issuer.boundToken({ sub: 'stranger' })
      const good = proof({ method: 'GET', url: `${BASE_URL}/` })
      for (const headers of [withProof(token, good), bearer(token)]) {
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
    const cnfs = [
      { jkt, 'x5t#S256': 'x' },
      { jkt, 'x5t#S256': null },
      { jkt: [jkt] },
      { jkt: null },
    ]
    for (const cnf of [...cnfs, {}, null, jkt, [jkt], { jwk: key.jwk }, { JKT: jkt }]) {
      const token = issuer.token({ cnf })
      const facts = { token, method: 'GET', url: `${BASE_URL}/`, now: now / 1000 }
      for (const headers of [withProof(token, createProof(key, facts)), bearer(token)]) {
        const answer = await ask({ headers })
        expect(answer.event, JSON.stringify(cnf)).toMatchObject({
          reason: 'confirmation_unsupported',
        })
        expect(answer.status).toBe(401)
      }
    }
    const token = issuer.token({ cnf: { jkt, more: { x: 1 } } })
    const facts = { token, method: 'GET', url: `${BASE_URL}/`, now: now / 1000 }
    expect(await ask({ headers: withProof(token, createProof(key, facts)) })).toMatchObject({
      status: 200,
    })
  })

  it('sends a token of a certificate with DPoP nowhere', async () => {
    const certificate = Buffer.of(0x30, 0)
    const senderConstraint = { ...DPOP, mtls: () => certificate }
    const ask = await open(way, { senderConstraint })
    const token = issuer.token({ cnf: { 'x5t#S256': 'x' } })
    expect(await ask({ headers: ['Authorization', `DPoP ${token}`] })).toMatchObject({
      status: 401,
      event: { reason: 'confirmation_unsupported' },
    })
  })

  it('is required, or an unbound token goes as Bearer only', async () => {
    const lax = await open(way, {})
    const token = issuer.token()
    expect(await lax({ headers: bearer(token) })).toMatchObject({
      status: 200,
      event: { confirmation: 'none' },
    })
    const { proof } = issuer.boundToken()
    const asDpop = withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
    for (const headers of [asDpop, asDpop.slice(0, 2)]) {
      for (const ask of [lax, await open(way, { senderConstraint: undefined })]) {
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
      const { token, proof } = issuer.boundToken(claims)
      const wrong = proof({ method: 'PUT', url: `${BASE_URL}/` })
      expect(await ask({ headers: withProof(token, wrong) })).toMatchObject({
        status: 401,
        event: { reason: 'proof_invalid', member: 'htm', keyId: issuer.kid },
      })
      const right = proof({ method: 'GET', url: `${BASE_URL}/` })
      expect(await ask({ headers: withProof(token, right) })).toMatchObject({
        status: 403,
        challenge:
          'Bearer realm="service", error="insufficient_scope", DPoP algs="ES256", error="insufficient_scope"',
      })
    }
  })

  it('challenges for both schemes, or for proofs alone', async () => {
    const missing = { headers: [] }
    expect(await (await open(way, {}))(missing)).toMatchObject({
      status: 401,
      challenge: 'Bearer realm="service", DPoP algs="ES256"',
    })
    const required = { ...DPOP, required: true }
    const strict = await open(way, { senderConstraint: required })
    expect(await strict(missing)).toMatchObject({ challenge: 'DPoP algs="ES256"' })
    const { token, proof } = issuer.boundToken({ sub: 'stranger' })
    const good = withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
    expect(await strict({ headers: good })).toMatchObject({
      status: 403,
      challenge: 'DPoP algs="ES256", error="insufficient_scope"',
    })
    const both = await open(way, { senderConstraint: { ...required, mtls: () => undefined } })
    expect(await both(missing)).toMatchObject({
      challenge: 'Bearer realm="service", DPoP algs="ES256"',
    })
    const mtls = await open(way, { senderConstraint: { mtls: () => undefined, required: true } })
    expect(await mtls(missing)).toMatchObject({ challenge: 'Bearer realm="service"' })
  })

  it('has 60 s after its proof and 30 s before, whatever the tolerance is', async () => {
    for (const clockToleranceSeconds of [0, 60]) {
      const ask = await open(way, { clockToleranceSeconds })
      const { token, proof } = issuer.boundToken()
      const madeAt = now
      const headers = withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
      const statusAfter = async (ms: number) => {
        now = madeAt + ms
        return (await ask({ headers })).status
      }
      expect(await statusAfter(0)).toBe(200)
      expect(await statusAfter(60_000)).toBe(200)
      expect(await statusAfter(60_001)).toBe(401)
      // The token was issued 100 s before; its proof is of then.
      now = madeAt
      const key = createProofKey()
      const old = issuer.token({ cnf: { jkt: key.thumbprint }, iat: madeAt / 1000 - 100 })
      const facts = { token: old, method: 'GET', url: `${BASE_URL}/`, now: madeAt / 1000 }
      const ahead = withProof(old, createProof(key, facts))
      for (const [ms, status] of [
        [-30_000, 200],
        [-30_001, 401],
      ] as const) {
        now = madeAt + ms
        expect((await ask({ headers: ahead })).status).toBe(status)
      }
      now = START
    }
  })

  it.each([
    ['/a%2fb', `${BASE_URL}/a%2Fb`, 200],
    ['http://orders.test/../a', `${BASE_URL}/a`, 401],
    ['//x', `${BASE_URL}//x`, 200],
    ['//x/y', `${BASE_URL}/x/y`, 401],
    ['//x/y', `${BASE_URL}/y`, 401],
    [`http://attacker.test/a?b`, `${BASE_URL}/a`, 200],
    [`${BASE_URL}/a`, `${BASE_URL}/a`, 200],
    ['https://attacker.test', `${BASE_URL}/`, 200],
    ['https://attacker.test/a', 'https://attacker.test/a', 401],
    ['HTTP://[::1]:8080/a', `${BASE_URL}/a`, 200],
    // Express has another path for these.
    ['http://a;b/c', `${BASE_URL}/c`, 401],
    ['http://a%2fb/c', `${BASE_URL}/c`, 401],
    ['javascript://a/c', `${BASE_URL}/c`, 401],
    ['*c', `${BASE_URL}/`, 401],
    // Nor does RFC 9112 know a fragment: Express takes `//x@y` for an authority before one.
    ['/a#', `${BASE_URL}/a`, 401],
    ['//x@y/a#', `${BASE_URL}//x@y/a`, 401],
  ])('of the target %s and the htu %s is %i', (...row) => expectOfHtu(way, ...row))

  it('takes * for a target of OPTIONS only, with an empty path', async () => {
    const senderConstraint = { dpop: { baseUrls: [BASE_URL, 'https://api.test/v1'] } }
    const ask = await open(way, { senderConstraint })
    const { token, proof } = issuer.boundToken()
    for (const [method, target, url, status] of [
      ['OPTIONS', '*', BASE_URL, 200],
      ['OPTIONS', '*', `${BASE_URL}/`, 200],
      ['OPTIONS', '*', 'https://api.test/v1', 200],
      ['OPTIONS', '*', `${BASE_URL}/*`, 401],
      ['OPTIONS', '*?x', BASE_URL, 401],
      ['GET', '*', BASE_URL, 401],
      ['POST', '*', `${BASE_URL}/`, 401],
    ] as const) {
      const answer = await ask({
        method,
        target,
        headers: withProof(token, proof({ method, url })),
      })
      expect([method, target, url, answer.status]).toEqual([method, target, url, status])
      if (status === 401) expect(answer.event).toMatchObject({ member: 'htu' })
    }
  })

  // From Node 26 on, Express finds no path in these and answers 404 before any middleware.
  it.each([
    ['http://a:b/c', `${BASE_URL}/c`],
    ['http://a:80b', `${BASE_URL}/`],
  ])('of the target %s and the htu %s is not let in', async (target, htu) => {
    const ask = await open(way, {})
    const key = createProofKey()
    const token = issuer.token({ cnf: { jkt: key.thumbprint } })
    const payload = {
      ...proofPayloadOf({ token, method: 'GET', url: htu, now: now / 1000 }),
      htu,
    }
    const proof = compactToken(proofHeaderOf(key), payload, es256(key.privateKey))
    const answer = await ask({ target, headers: withProof(token, proof) })
    const major = Number.parseInt(process.versions.node, 10)
    expect(answer.status).toBe(way.name.startsWith('Express') && major >= 26 ? 404 : 401)
  })

  it('is refused with a key that is no point of the curve, although it is bound to it', async () => {
    const ask = await open(way, {})
    const key = createProofKey()
    const jwk = { ...key.jwk, y: key.jwk.x }
    const token = issuer.token({ cnf: { jkt: await calculateJwkThumbprint(jwk) } })
    const payload = proofPayloadOf({ token, method: 'GET', url: `${BASE_URL}/`, now: now / 1000 })
    const proof = compactToken({ ...proofHeaderOf(key), jwk }, payload, es256(key.privateKey))
    expect(await ask({ headers: withProof(token, proof) })).toMatchObject({
      status: 401,
      event: { reason: 'proof_invalid', member: 'jwk' },
    })
  })

  it('takes what a proof and its key have more', async () => {
    const ask = await open(way, {})
    const key = createProofKey()
    const token = issuer.token({ cnf: { jkt: key.thumbprint } })
    const facts = { token, method: 'GET', url: `${BASE_URL}/`, now: now / 1000 }
    const header = proofHeaderOf(key)
    const jwk = { ...key.jwk, use: 'sig', alg: 'ES256', kid: 'x', ext: true, key_ops: ['verify'] }
    const payload = { ...proofPayloadOf(facts), nonce: 'x', exp: 1, iat: now / 1000 + 0.5 }
    const proof = compactToken(
      { ...header, jwk, kid: 'x', b64: true },
      payload,
      es256(key.privateKey),
    )
    expect(await ask({ headers: withProof(token, proof) })).toMatchObject({ status: 200 })
    for (const jti of ['j', 'j'.repeat(256)]) {
      const own = compactToken(header, { ...payload, jti }, es256(key.privateKey))
      expect(await ask({ headers: withProof(token, own) })).toMatchObject({ status: 200 })
    }
    // No segment in base64url has a length of 4n + 1, so the payload varies, too.
    const sized = (more: number, rest: number) =>
      compactToken(
        { ...header, more: 'x'.repeat(more) },
        { ...payload, more: 'x'.repeat(rest) },
        es256(key.privateKey),
      )
    const shortest = sized(0, 0).length
    const drafts = Array.from({ length: 24 }, (_, index) =>
      sized(Math.floor(((4096 - shortest) * 3) / 4) - 3 + (index % 6), Math.floor(index / 6)),
    )
    for (const [length, status] of [
      [4096, 200],
      [4097, 401],
    ] as const) {
      const draft = drafts.find((proof) => proof.length === length)
      expect(await ask({ headers: withProof(token, String(draft)) })).toMatchObject({ status })
    }
  })

  it('serves many writes, each proof once, on all instances', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    const ask = await open(way, {}, store)
    const elsewhere = await open(way, {}, store)
    const { token, proof } = issuer.boundToken({ jti: undefined })
    const fresh = () => withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
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
    now += 60_000
    expect(await ask({ headers: last })).toMatchObject({ status: 200 })
    expect(await elsewhere({ headers: last })).toMatchObject({ status: 401 })
    // Another key may have the same jti, and another token of the same key not.
    now = START
    const [one, other] = [createProofKey(), createProofKey()]
    const statuses = []
    for (const key of [one, other, one]) {
      const own = issuer.token({ cnf: { jkt: key.thumbprint } })
      const facts = { token: own, method: 'GET', url: `${BASE_URL}/`, now: now / 1000 }
      const payload = { ...proofPayloadOf(facts), jti: 'the-same' }
      const text = compactToken(proofHeaderOf(key), payload, es256(key.privateKey))
      statuses.push((await ask({ headers: withProof(own, text) })).status)
    }
    expect(statuses).toEqual([200, 200, 401])
  })

  it('remembers a proof until iat plus 60 s, and a minute or more for drift', async () => {
    const ttls: number[] = []
    const consume = async (_id: string, ttlMs: number): Promise<boolean> => ttls.push(ttlMs) > 0
    const ask = await open(way, {}, { consume })
    const { token, proof } = issuer.boundToken()
    const headers = withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
    for (const ageMs of [0, 20_000]) {
      now = START + ageMs
      expect(await ask({ headers })).toMatchObject({ status: 200 })
      const beyond = Number(ttls.at(-1)) - (60_000 - ageMs)
      expect(beyond).toBeGreaterThanOrEqual(60_000)
      expect(beyond).toBeLessThanOrEqual(900_000)
    }
  })

  it('refuses every hostile proof', async () => {
    // One way suffices for the tokens of the other scheme.
    const of = way === throughAuthenticate ? oauth2Issuer : issuer
    const store = memoryStore()
    onTestFinished(() => store.close())
    const events: DecisionEvent[] = []
    const onDecision = (event: DecisionEvent) => events.push(event)
    const policy = of.policy({ senderConstraint: DPOP, onDecision })
    const [here, elsewhere] = await Promise.all(
      [authFor(policy), authFor(policy)].map(async (auth) => {
        await auth.ready()
        return way.open(auth, events, store)
      }),
    )
    if (here === undefined || elsewhere === undefined) throw new Error('two receivers')
    const cases = hostileProofs(of)
    expect(cases.length).toBeGreaterThanOrEqual(120)
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    const members = new Set<unknown>()
    const sent = ({ method, target, headers }: HostileProof): Sent => ({ method, target, headers })
    for (const each of cases) {
      const { name, replays, expect: status } = each
      if (replays !== undefined) {
        const first = replays === 'here' ? here : elsewhere
        expect(await first(sent(each)), name).toMatchObject({ status: 200 })
      }
      const answer = await here(sent(each))
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

describe('several issuers', () => {
  it.each(WAYS)('have one challenge, and each its own binding, through $name', async (way) => {
    const other = await createTestIssuer({ clock, issuer: 'https://other.test' })
    onTestFinished(() => other.close())
    const events: DecisionEvent[] = []
    const onDecision = (event: DecisionEvent) => events.push(event)
    const openBoth = async (
      one: ServiceAuthPolicy['senderConstraint'],
      two: ServiceAuthPolicy['senderConstraint'],
    ) => {
      const auth = serviceAuth([
        issuer.policy({ senderConstraint: one, onDecision }),
        other.policy({ senderConstraint: two, onDecision }),
      ])
      onTestFinished(() => auth.close())
      await auth.ready()
      return way.open(auth as never as ServiceAuth, events)
    }
    const required = { ...DPOP, required: true }
    const challenges = [
      [undefined, undefined, 'Bearer realm="service"'],
      [DPOP, undefined, 'Bearer realm="service", DPoP algs="ES256"'],
      [undefined, required, 'Bearer realm="service", DPoP algs="ES256"'],
      [DPOP, required, 'Bearer realm="service", DPoP algs="ES256"'],
      [
        required,
        { ...required, mtls: () => undefined },
        'Bearer realm="service", DPoP algs="ES256"',
      ],
      [
        required,
        { mtls: () => undefined, required: true },
        'Bearer realm="service", DPoP algs="ES256"',
      ],
      [required, required, 'DPoP algs="ES256"'],
    ] as const
    for (const [one, two, challenge] of challenges) {
      const ask = await openBoth(one, two)
      expect(await ask({ headers: [] })).toMatchObject({ status: 401, challenge })
    }
    const ask = await openBoth(DPOP, undefined)
    for (const _again of [1, 2]) {
      for (const [of, reason] of [
        [issuer, undefined],
        [other, 'confirmation_unsupported'],
      ] as const) {
        const { token, proof } = of.boundToken()
        const good = withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
        for (const _cached of [1, 2]) {
          const answer = await ask({ headers: good })
          expect(answer.event['reason']).toBe(reason)
          if (reason !== undefined) expect(answer.challenge).toBe(INVALID)
          expect(await ask({ headers: bearer(token) })).toMatchObject({ status: 401 })
        }
      }
    }
  })
})

describe.each(EXPRESS_MAJORS)('behind other middlewares, on $major', ({ express }) => {
  async function openGate(senderConstraint: ServiceAuthPolicy['senderConstraint']) {
    const auth = authFor(issuer.policy({ senderConstraint }))
    await auth.ready()
    const gate = acceptOneOf([
      { name: 'user', ...sessionCredential((_request, _response, next) => next()) },
      { name: 'service', ...serviceCredential(auth) },
    ])
    const { port } = await startReceiver({ express, mount: (app) => app.use(gate) })
    return async (...headers: string[]) => answerOf(await rawRequest(port, { headers }), [])
  }

  it('acceptOneOf challenges as its service choice does', async () => {
    const ask = await openGate(DPOP)
    expect(await ask()).toMatchObject({ challenge: 'Bearer realm="service", DPoP algs="ES256"' })
    const { token, proof } = issuer.boundToken()
    const good = linesOf(withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` })))
    for (const refused of [[...good, 'Cookie: sAccessToken=x'], linesOf(bearer(token))]) {
      expect(await ask(...good)).toMatchObject({ status: 200 })
      expect(await ask(...refused)).toMatchObject({ status: 401, challenge: INVALID })
    }
  })

  it('acceptOneOf challenges as all its service choices together do, and each as it does alone', async () => {
    const required = { ...DPOP, required: true }
    const bearerOnly = 'Bearer realm="service"'
    const dpopOnly = 'DPoP algs="ES256"'
    const both = `${bearerOnly}, ${dpopOnly}`
    for (const [one, two, ...challenges] of [
      [undefined, undefined, bearerOnly, bearerOnly, bearerOnly],
      [undefined, DPOP, both, bearerOnly, both],
      [required, undefined, both, dpopOnly, bearerOnly],
      [undefined, required, both, bearerOnly, dpopOnly],
      [DPOP, required, both, both, dpopOnly],
      [required, required, dpopOnly, dpopOnly, dpopOnly],
    ] as const) {
      const choices = [one, two].map((senderConstraint, index) => ({
        name: `service-${index}`,
        presented: ({ headers }: Request) => headers['x-choice'] === String(index),
        verify: authFor(issuer.policy({ senderConstraint })),
      }))
      const gate = acceptOneOf(choices as [ServiceChoice, ServiceChoice])
      const { port } = await startReceiver({ express, mount: (app) => app.use(gate) })
      const asked = [[], ['X-Choice: 0'], ['X-Choice: 1']].map((headers) =>
        rawRequest(port, { headers }),
      )
      const answers = (await Promise.all(asked)).map((bytes) => answerOf(bytes, []))
      expect(answers.map(({ status }) => status)).toEqual([401, 401, 401])
      expect(answers.map(({ challenge }) => challenge)).toEqual(challenges)
    }
  })

  it('a mounted router, a further serviceAuth and a permission see the same request', async () => {
    const first = authFor(issuer.policy({ senderConstraint: DPOP }))
    const second = authFor(issuer.policy({ senderConstraint: { ...DPOP, required: true } }))
    const store = memoryStore()
    onTestFinished(() => store.close())
    const seen: unknown[] = []
    const { port } = await startReceiver({
      express,
      mount(app) {
        const router = express.Router()
        router.use(first, second, requirePermissions('orders:read'), requireSingleUse({ store }))
        app.use('/api/:version', router)
        app.use('/api/v1/all', requirePermissions('everything'))
        app.use((req, _res, next) => {
          seen.push(serviceOf(req).confirmation, Object.isFrozen(serviceOf(req).confirmation))
          next()
        })
      },
    })
    const key = createProofKey()
    const token = issuer.token({ cnf: { jkt: key.thumbprint } })
    const proofAt = (url: string) =>
      createProof(key, { token, method: 'GET', url, now: now / 1000 })
    const headers = linesOf(withProof(token, proofAt(`${BASE_URL}/api/v1/orders`)))
    const path = '/api/v1/orders?x'
    expect(answerOf(await rawRequest(port, { path, headers }), [])).toMatchObject({ status: 200 })
    expect(seen).toEqual([{ kind: 'dpop', thumbprint: key.thumbprint }, true])
    expect(answerOf(await rawRequest(port, { path, headers }), [])).toMatchObject({
      status: 401,
      challenge: 'DPoP algs="ES256", error="invalid_token"',
    })
    const all = linesOf(withProof(token, proofAt(`${BASE_URL}/api/v1/all`)))
    const powerless = await rawRequest(port, { path: '/api/v1/all', headers: all })
    expect(answerOf(powerless, [])).toMatchObject({
      status: 403,
      challenge: 'DPoP algs="ES256", error="insufficient_scope"',
    })
  })
})

describe('authenticate', () => {
  it('does not consume a proof that lacks a permission', async () => {
    const auth = authFor(issuer.policy({ senderConstraint: { ...DPOP, required: true } }))
    const singleUse = memoryStore()
    onTestFinished(() => singleUse.close())
    const { token, proof } = issuer.boundToken()
    const rawHeaders = withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
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
    const auth = authFor(issuer.policy({ senderConstraint: DPOP }))
    const { token, proof } = issuer.boundToken()
    const good = withProof(token, proof({ method: 'GET', url: `${BASE_URL}/` }))
    const ask = (options?: object) => auth.authenticate({ rawHeaders: good }, options)
    const wrong = [undefined, {}, { method: 'GET' }, { url: '/' }, { method: '', url: '/' }]
    const urls = [5, '', 'orders', null, {}, 'mailto:x', '?x']
    for (const options of [...wrong, ...urls.map((url) => ({ method: 'GET', url }))]) {
      await expect(ask(options), JSON.stringify(options)).rejects.toMatchObject({
        code: 'wrong_wiring',
      })
    }
    await expect(ask({ method: 5, url: '/' })).rejects.toMatchObject({ code: 'wrong_wiring' })
    for (const url of ['/', '/?x', 'http://anywhere.test/', 'http://anywhere.test']) {
      expect(await ask({ method: 'GET', url })).toMatchObject({ outcome: 'accepted' })
    }
    const unbound = { authorization: `Bearer ${issuer.token()}` }
    expect(await auth.authenticate(unbound)).toMatchObject({ outcome: 'accepted' })
    // What is refused anyway needs neither.
    const expired = issuer.boundToken({ exp: 5 }).token
    expect(await auth.authenticate({ authorization: `DPoP ${expired}` })).toMatchObject({
      reason: 'token_expired',
    })
    const without = authFor(issuer.policy())
    expect(await without.authenticate({ rawHeaders: good })).toMatchObject({
      reason: 'confirmation_unsupported',
    })
  })

  it('sees one proof or two in every form of headers', async () => {
    const auth = authFor(issuer.policy({ senderConstraint: DPOP }))
    const { token, proof } = issuer.boundToken()
    const authorization = `DPoP ${token}`
    const fresh = () => proof({ method: 'GET', url: `${BASE_URL}/` })
    const ask = async (headers: Parameters<typeof auth.authenticate>[0]) => {
      const answer = await auth.authenticate(headers, { method: 'GET', url: '/' })
      return answer.outcome === 'accepted' ? 'accepted' : answer.reason
    }
    const both = new Headers({ authorization, dpop: fresh() })
    expect(await ask(both)).toBe('accepted')
    both.append('DPoP', fresh())
    expect(await ask(both)).toBe('proof_invalid')
    expect(await ask({ Authorization: authorization, DPoP: fresh() })).toBe('accepted')
    expect(await ask({ authorization, dpop: [fresh()] })).toBe('accepted')
    expect(await ask({ authorization, dpop: [fresh(), fresh()] })).toBe('proof_invalid')
    expect(await ask({ authorization, dpop: fresh(), DPoP: fresh() })).toBe('proof_invalid')
    expect(await ask({ authorization, dpop: [] })).toBe('proof_missing')
    expect(await ask({ authorization, dpop: undefined })).toBe('proof_missing')
    expect(
      await ask(
        Object.create(
          { dpop: fresh() },
          { authorization: { value: authorization, enumerable: true } },
        ),
      ),
    ).toBe('proof_missing')
    const inherited = JSON.parse('{"__proto__":"x","constructor":["y"],"toString":"z"}')
    expect(await ask({ authorization, dpop: fresh(), ...inherited })).toBe('accepted')
    const raw = ['authorization', authorization, 'DPoP', fresh()]
    expect(await ask({ rawHeaders: raw })).toBe('accepted')
    expect(await ask({ rawHeaders: [...raw, 'dpop', fresh()] })).toBe('proof_invalid')
  })
})
