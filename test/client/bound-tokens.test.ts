import { createHash, webcrypto } from 'node:crypto'
import {
  memoryStore,
  requireIdempotencyKey,
  requireSingleUse,
  serviceAuth,
  serviceOf,
} from 'express-service-auth'
import { type DpopTokenSource, ServiceCallError, serviceFetch } from 'express-service-auth/client'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { startIdentityCore } from '../support/core/identity-core/identity-core.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { freePort } from '../support/network/free-port.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../support/receiver/express-majors.js'
import { startReceiver } from '../support/receiver/receiver.js'
import { makeClientCertificates } from '../support/tls/client-certificates.js'
import { API_DOMAIN, API_KEY } from './claims.js'
import { failure, sourceAt, tokenOf } from './kit.js'
import { mints, startLyingCore } from './lying-core.js'

const HOURS_AHEAD = 5 * 3_600_000
const clock = (): number => Date.now() + HOURS_AHEAD
const core = await startIdentityCore({ apiKey: API_KEY, clock })
afterAll(() => core.close())

const payloadOf = (jws: string) =>
  JSON.parse(Buffer.from(String(jws.split('.')[1]), 'base64url').toString())

const dpopSource = (url: string, more = {}): DpopTokenSource =>
  sourceAt(url, { bind: 'dpop', ...more }) as DpopTokenSource

it('signs the method that fetch sends', async () => {
  const source = dpopSource(core.url)
  const { proof } = (await createTestIssuer({ issuer: API_DOMAIN })).boundToken()
  for (const [method, sent] of [
    ['get', 'GET'],
    ['Post', 'POST'],
    ['patch', 'patch'],
    ['PATCH', 'PATCH'],
  ] as const) {
    const url = 'https://orders.test/'
    expect(new Request(url, { method }).method).toBe(sent)
    expect(payloadOf(await source.proof({ method, url })).htm).toBe(sent)
    expect(payloadOf(proof({ method, url })).htm).toBe(sent)
  }
  source.close()
})

/** A receiver whose first answers are scripted, and which consumes each proof. */
async function startOrders(express: ExpressModule, firstAnswers: number[] = []) {
  const store = memoryStore()
  onTestFinished(() => store.close())
  const proofs: string[] = []
  const tokens = new Set<string>()
  const baseUrls: string[] = ['http://placeholder.test']
  // The port is known only once the server listens.
  let auth: ReturnType<typeof serviceAuth> | undefined
  const receiver = await startReceiver({
    express,
    mount(app) {
      app.use((req, res, next) => {
        proofs.push(String(req.headers['dpop']))
        tokens.add(String(req.headers.authorization))
        const status = firstAnswers.shift()
        if (status !== undefined) return void res.set('Retry-After', '0').status(status).end()
        return auth?.(req, res, next)
      })
      app.use(requireSingleUse({ store }))
      app.post('/keyed', requireIdempotencyKey({ store }), (req, res) => {
        res.json(serviceOf(req).confirmation)
      })
    },
    handler: (req, res) => void res.json(serviceOf(req).confirmation),
  })
  baseUrls[0] = receiver.url
  auth = serviceAuth({
    issuer: API_DOMAIN,
    jwksUri: `${core.issuer}/auth/jwt/jwks.json`,
    audience: 'orders',
    source: 'microservice',
    tokenType: 'service-access',
    callers: ['billing'],
    clock,
    senderConstraint: { dpop: { baseUrls }, required: true },
  })
  onTestFinished(() => auth?.close())
  return { ...receiver, url: receiver.url, proofs, tokens }
}

describe.each(EXPRESS_MAJORS)('a source with a key of its own, and $major', ({ express }) => {
  it('serves many writes by one token, hours behind the core', async () => {
    const source = dpopSource(core.url)
    const { url, proofs, tokens } = await startOrders(express)
    const call = serviceFetch(source, { origins: [url] })
    for (const path of ['/a?x=1', '/b%7e/../c', '/d e', '/ü#x', '/a|b']) {
      const response = await call(`${url}${path}`, { method: 'POST' })
      expect(response.status, path).toBe(200)
      const { jkt } = payloadOf(await tokenOf(source)).cnf
      expect(await response.json()).toEqual({ kind: 'dpop', thumbprint: jkt })
    }
    expect(new Set(proofs).size).toBe(5)
    expect(tokens.size).toBe(1)
    const [scheme] = [...tokens][0]?.split(' ') ?? []
    expect(scheme).toBe('DPoP')
    expect(Math.abs(payloadOf(String(proofs[0])).iat - clock() / 1000)).toBeLessThan(10)
    const asked = await call(new Request(`${url}/request`, { method: 'POST', body: 'x' }))
    expect(asked.status).toBe(200)
  })

  it('sends a fresh proof with each attempt', async () => {
    const source = dpopSource(core.url)
    const { url, proofs } = await startOrders(express, [503, 503])
    const call = serviceFetch(source, { origins: [url], idempotencyKey: 'auto' })
    expect((await call(`${url}/keyed`, { method: 'POST' })).status).toBe(200)
    expect(new Set(proofs).size).toBe(3)
  })
})

describe('proof', () => {
  const REQUEST = { method: 'GET', url: 'https://orders.test/' }

  it('is for the current token, or the given one', async () => {
    const source = dpopSource(core.url)
    const request = { method: 'GET', url: 'https://orders.test:443/a/../b?x#y' }
    const proof = payloadOf(await source.proof(request))
    const token = await tokenOf(source)
    const ath = (text: string) => createHash('sha256').update(text).digest('base64url')
    expect(proof).toMatchObject({
      htm: 'GET',
      htu: 'https://orders.test/b',
      ath: ath(token),
      jti: expect.stringMatching(/^[\w-]{22,}$/),
    })
    const other = payloadOf(await source.proof({ ...request, token: 'another' }))
    expect(other.ath).toBe(ath('another'))
    expect(other.jti).not.toBe(proof.jti)
  })

  it('tells the time of the core, however the clock of the caller runs', async () => {
    let ms = 1000
    const source = dpopSource(core.url, { clock: () => ms })
    const { iat } = payloadOf(await tokenOf(source))
    const proofTime = async (): Promise<number> => payloadOf(await source.proof(REQUEST)).iat - iat
    expect(await proofTime()).toBe(0)
    ms += 59_900
    expect(await proofTime()).toBe(59)
    ms += 100
    expect(await proofTime()).toBe(60)
  })

  it('is signed by a key that cannot be exported', async () => {
    const generate = vi.spyOn(webcrypto.subtle, 'generateKey')
    onTestFinished(() => generate.mockRestore())
    const source = dpopSource(core.url)
    await source.proof(REQUEST)
    expect(generate).toHaveBeenCalledTimes(1)
    const pair = (await generate.mock.results[0]?.value) as webcrypto.CryptoKeyPair
    const exported = webcrypto.subtle.exportKey('jwk', pair.privateKey)
    await expect(exported).rejects.toThrow('not extractable')
  })

  it('needs a request', async () => {
    const source = dpopSource(core.url)
    const urls = [5, '', '/x', 'ftp://orders.test', 'https://orders.test/50%off']
    const wrong = [
      ...[undefined, null, {}, { url: REQUEST.url }, { method: 'GET' }],
      ...[5, '', 'G T'].map((method) => ({ ...REQUEST, method })),
      ...urls.map((url) => ({ ...REQUEST, url })),
      ...[5, '', null].map((token) => ({ ...REQUEST, token })),
    ]
    for (const request of wrong) {
      await expect(source.proof(request as never)).rejects.toThrow(TypeError)
    }
  })

  it('fails like a token if there is none', async () => {
    const source = dpopSource(`http://127.0.0.1:${await freePort()}`)
    await expect(source.proof(REQUEST)).rejects.toMatchObject(failure('core_unreachable'))
    source.close()
    await expect(source.proof(REQUEST)).rejects.toMatchObject(failure('closed'))
  })
})

describe('a source bound to a certificate', async () => {
  const { chained, client } = await makeClientCertificates()

  it('asks for its thumbprint, and has no proofs', async () => {
    const forms = [
      [chained.cert, chained],
      [`${client.key}${client.cert}`, client],
      [client.der, client],
      [Buffer.from(client.cert), client],
    ] as const
    for (const [certificate, { thumbprint }] of forms) {
      for (const singleUse of [false, true]) {
        const source = sourceAt(core.url, { bind: { certificate }, singleUse })
        expect(payloadOf(await tokenOf(source)).cnf).toEqual({ 'x5t#S256': thumbprint })
        expect(source).not.toHaveProperty('proof')
      }
    }
  })

  it('refuses what is no certificate, without repeating it', () => {
    const certificates = [client.key, '', 'x', Buffer.of(), 5, null, client.der.buffer]
    const wrong = [...certificates.map((certificate) => ({ certificate })), {}, 'mtls', true, null]
    for (const bind of [...wrong, { certificate: client.cert, key: client.key }]) {
      expect(() => sourceAt(core.url, { bind } as never)).toThrow(
        "bind must be 'dpop' or { certificate: a certificate in PEM or DER }",
      )
    }
    expect(() => sourceAt(core.url, { bind: 'dpop', singleUse: true })).toThrow(
      "singleUse is not needed with bind: 'dpop'",
    )
  })
})

it('does not believe a token that is bound otherwise than it has asked for', async () => {
  const others = [undefined, { jkt: 'x' }, { jkt: 'x', 'x5t#S256': 'y' }, null]
  for (const cnf of others) {
    const lying = await startLyingCore(mints({}, { cnf }))
    await expect(tokenOf(dpopSource(lying.url))).rejects.toThrow('token_unexpected, in cnf')
    if (cnf === undefined) continue
    await expect(tokenOf(sourceAt(lying.url))).rejects.toThrow('token_unexpected, in cnf')
  }
})

describe('serviceFetch', () => {
  const token = async (): Promise<string> => 'a-token-of-the-app'
  const sent: Headers[] = []
  const fetch = async (_input: unknown, init?: RequestInit): Promise<Response> => {
    sent.push(new Headers(init?.headers))
    return new Response('x')
  }
  const origins = ['https://orders.test']

  it('takes proofs from any source', async () => {
    const asked: unknown[] = []
    const source = { token, proof: async (request: unknown) => `proof-${asked.push(request)}` }
    const call = serviceFetch(source, { origins, fetch })
    await call('https://orders.test/a?b#c', { method: 'DELETE' })
    const expected = { method: 'DELETE', token: 'a-token-of-the-app' }
    expect(asked).toMatchObject([{ ...expected, url: expect.stringMatching(/orders.test\/a/) }])
    expect(sent.at(-1)?.get('authorization')).toBe('DPoP a-token-of-the-app')
    expect(sent.at(-1)?.get('dpop')).toBe('proof-1')
    await serviceFetch({ token }, { origins, fetch })('https://orders.test/')
    expect(sent.at(-1)?.get('authorization')).toBe('Bearer a-token-of-the-app')
    expect(sent.at(-1)?.has('dpop')).toBe(false)
  })

  it.each<[string, () => unknown]>([
    ['rejects', () => Promise.reject(new Error('no key'))],
    ['gives an empty text', async () => ''],
    ['gives two words', async () => 'two words'],
    ['gives nothing', async () => undefined],
  ])('sends nothing for a proof that %s', async (_, proof) => {
    const before = sent.length
    const call = serviceFetch({ token, proof } as never, { origins, fetch })
    const error = await call('https://orders.test/').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ServiceCallError)
    expect(error).toMatchObject({ code: 'token', report: { attempts: [{ error: 'token' }] } })
    expect(sent.length).toBe(before)
  })

  it('waits for a proof until the deadline, or an abort', async () => {
    const source = { token, proof: () => new Promise<string>(() => {}) }
    const call = serviceFetch(source, { origins, fetch, deadlineMs: 100 })
    await expect(call('https://orders.test/')).rejects.toMatchObject({ code: 'deadline' })
    const signal = AbortSignal.timeout(20)
    const aborted = call('https://orders.test/', { signal })
    await expect(aborted).rejects.toMatchObject({ name: 'TimeoutError' })
  })
})
