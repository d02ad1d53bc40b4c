import { constants, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, createServer, request, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect, type SecureVersion, type TLSSocket } from 'node:tls'
import type { ErrorRequestHandler } from 'express'
import {
  memoryStore,
  requirePermissions,
  requireSingleUse,
  ServiceAuthError,
  type ServiceAuthPolicy,
  serviceOf,
} from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { collectEvents } from '../support/observe/channel-events.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../support/receiver/express-majors.js'
import { authFor, startBehind } from '../support/receiver/receiver.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'
import { type Certificate, makeClientCertificates } from '../support/tls/client-certificates.js'

const issuer = await createTestIssuer()
const certificates = await makeClientCertificates()
const { ca, server, client, other, expired, chained } = certificates
afterAll(() => issuer.close())

const store = memoryStore()
const boundTo = ({ thumbprint }: Certificate, claims: object = {}): string =>
  issuer.token({ cnf: { 'x5t#S256': thumbprint }, ...claims })

interface Options {
  readonly express: ExpressModule
  readonly policy?: Partial<ServiceAuthPolicy>
  readonly tls?: ServerOptions
}

async function startTls({ express, policy, tls }: Options) {
  const events = collectEvents('decision')
  const errors: unknown[] = []
  const auth = authFor(issuer.policy({ senderConstraint: { mtls: true }, ...policy }))
  await auth.ready()
  const note: ErrorRequestHandler = (error, _request, response, _next) => {
    errors.push(error)
    response.status(599).end()
  }
  const app = express()
    .use(auth)
    .use('/once', requireSingleUse({ store }))
    .use('/all', requirePermissions('everything'))
    .use((req, res) => {
      const { confirmation } = serviceOf(req)
      const { raw } = (req.socket as TLSSocket).getPeerX509Certificate?.() ?? {}
      res.json({ confirmation, isResumed: (req.socket as TLSSocket).isSessionReused(), der: raw })
    })
    .use(note)
  const settings = { ...server, ca, requestCert: true, rejectUnauthorized: false, ...tls }
  const listening = createServer(settings, app).listen(0, '127.0.0.1')
  await once(listening, 'listening')
  onTestFinished(() => {
    listening.closeAllConnections()
    listening.close()
  })
  const { port } = listening.address() as AddressInfo
  return { listening, port, events, errors, auth, last: () => events.at(-1) as never as Told }
}

type Told = Record<string, unknown> | undefined

interface Call {
  readonly token: string
  readonly certificate?: Certificate
  readonly version?: SecureVersion
  readonly agent?: Agent
  readonly path?: string
}

async function call(
  port: number,
  { token, certificate, version = 'TLSv1.3', agent, path = '/' }: Call,
) {
  const identity = certificate && keyPair(certificate)
  const versions = { minVersion: version, maxVersion: version }
  const own = agent ?? new Agent({ ca, ...identity, ...versions })
  const sent = request({ port, host: '127.0.0.1', path, agent: own })
  sent.setHeader('authorization', `Bearer ${token}`)
  sent.end()
  try {
    const [response] = await once(sent, 'response')
    const body = await text(response)
    const { statusCode: status, headers } = response
    return { status, challenge: headers['www-authenticate'], body: body && JSON.parse(body) }
  } finally {
    if (agent === undefined) own.destroy()
  }
}

const keyPair = ({ cert, key }: Certificate) => ({ cert, key })

/** In DER, too. */
const publicKey = new X509Certificate(client.der).publicKey.export({ type: 'spki', format: 'der' })

/** As an app may write it for its own TLS server. */
const ownFunction = ({ socket }: IncomingMessage): Uint8Array | undefined =>
  (socket as TLSSocket).getPeerX509Certificate()?.raw

const CHAINS = [
  ['one', client],
  ['two', chained],
] as const

const WAYS = [
  ['TLSv1.2', 'true', true],
  ['TLSv1.3', 'a function', ownFunction],
] as const

const REFUSED = { status: 401, challenge: 'Bearer realm="service", error="invalid_token"' }

describe.each(EXPRESS_MAJORS)('a token bound to a certificate, on $major', ({ express }) => {
  describe.each(WAYS)('over %s, where mtls is %s', (version, _, mtls) => {
    const policy = { senderConstraint: { mtls } }

    it.each(CHAINS)(
      'is accepted with its certificate, from a chain of %s',
      async (_, certificate) => {
        const { port, events } = await startTls({ express, policy })
        const confirmation = { kind: 'certificate', thumbprint: certificate.thumbprint }
        const token = boundTo(certificate)
        for (const _again of [1, 2]) {
          const answer = await call(port, { token, certificate, version })
          expect(answer).toMatchObject({ status: 200, body: { confirmation } })
        }
        expect(events).toMatchObject([{ confirmation: 'certificate' }, events[0]])
      },
    )

    it.each(CHAINS)(
      'is accepted in a resumed session, from a chain of %s',
      async (_, certificate) => {
        const { port } = await startTls({ express, policy })
        const versions = { minVersion: version, maxVersion: version }
        const agent = new Agent({ ca, ...keyPair(certificate), ...versions, keepAlive: false })
        const token = boundTo(certificate)
        expect(await call(port, { token, agent })).toMatchObject({ body: { isResumed: false } })
        const resumed = await call(port, { token, agent })
        expect(resumed).toMatchObject({ status: 200, body: { isResumed: true } })
        expect(await call(port, { token: boundTo(other), agent })).toMatchObject(REFUSED)
      },
    )

    it('is refused without a certificate, and with another, cached or not', async () => {
      const { port, last } = await startTls({ express, policy })
      const token = boundTo(client)
      const refuse = async (): Promise<void> => {
        expect(await call(port, { token, version })).toMatchObject(REFUSED)
        expect(last()).toMatchObject({ reason: 'certificate_missing', keyId: issuer.kid })
        expect(await call(port, { token, version, certificate: other })).toMatchObject(REFUSED)
        expect(last()).toMatchObject({ reason: 'certificate_mismatch', keyId: issuer.kid })
      }
      await refuse()
      expect(await call(port, { token, version, certificate: client })).toMatchObject({
        status: 200,
      })
      await refuse()
    })

    it('leaves an expired certificate to the TLS server', async () => {
      const token = boundTo(expired)
      const trusting = await startTls({ express, policy })
      const answer = await call(trusting.port, { token, version, certificate: expired })
      expect(answer).toMatchObject({ status: 200 })
      const strict = await startTls({ express, policy, tls: { rejectUnauthorized: true } })
      const refused = call(strict.port, { token, version, certificate: expired })
      await expect(refused).rejects.toThrow()
    })
  })

  it('is accepted if the client hangs up meanwhile', async () => {
    const { port, events } = await startTls({ express })
    const socket = connect({ port, host: '127.0.0.1', ca, ...keyPair(client) })
    onTestFinished(() => void socket.destroy())
    const token = boundTo(client)
    // A half-closed connection is destroyed before a new token has been verified.
    socket.end(`GET / HTTP/1.1\r\nHost: orders\r\nAuthorization: Bearer ${token}\r\n\r\n`)
    await vi.waitFor(() => expect(events).toMatchObject([{ outcome: 'accepted' }]))
  })

  it('is judged by the last handshake of its connection, which TLS 1.2 can repeat', async () => {
    // A handshake that resumes the session does not ask for a certificate.
    const secureOptions = constants.SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION
    const tls = { requestCert: false, maxVersion: 'TLSv1.2', secureOptions } as const
    const { port, last, listening } = await startTls({ express, tls })
    const accepted = once(listening, 'secureConnection')
    const socket = connect({ port, host: '127.0.0.1', ca, ...keyPair(client) })
    onTestFinished(() => void socket.destroy())
    const [ofServer] = (await accepted) as [TLSSocket]
    const status = async (certificate: Certificate): Promise<number> => {
      const token = boundTo(certificate)
      socket.write(`GET / HTTP/1.1\r\nHost: orders\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      const [answer] = await once(socket, 'data')
      return Number(answer.toString().slice(9, 12))
    }
    for (const _again of [1, 2]) {
      expect(await status(client)).toBe(401)
      expect(last()).toMatchObject({ reason: 'certificate_missing' })
    }
    const demand = { requestCert: true, rejectUnauthorized: false }
    await new Promise<void>((resolve, reject) => {
      ofServer.renegotiate(demand, (error) => (error === null ? resolve() : reject(error)))
    })
    for (const _again of [1, 2]) {
      expect(await status(client)).toBe(200)
      expect(await status(other)).toBe(401)
      expect(last()).toMatchObject({ reason: 'certificate_mismatch' })
    }
  })

  it('is judged on each request, however many share its verification', async () => {
    const { port } = await startTls({ express })
    const token = boundTo(client)
    const answers = await Promise.all(
      [client, other, undefined, client, other].map((certificate) =>
        call(port, { token, ...(certificate && { certificate }) }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 200, 401])
  })

  it('is the 401 of an invalid token before any 403', async () => {
    const { port, last } = await startTls({ express, policy: { permissions: ['orders:read'] } })
    const wrong = { sub: 'stranger' }
    const refused = await call(port, { token: boundTo(client, wrong), certificate: other })
    expect(refused).toMatchObject(REFUSED)
    expect(last()).toEqual({
      outcome: 'refused',
      reason: 'certificate_mismatch',
      status: 401,
      by: 'serviceAuth',
      keyId: issuer.kid,
    })
    const right = await call(port, { token: boundTo(client, wrong), certificate: client })
    expect(right).toMatchObject({ status: 403 })
    const powerless = boundTo(client, { permissions: [] })
    expect(await call(port, { token: powerless, certificate: other })).toMatchObject(REFUSED)
    expect(await call(port, { token: powerless, certificate: client })).toMatchObject({
      status: 403,
    })
  })

  it('comes before a denied caller and an unknown denylist', async () => {
    const denylist = new ManualDenylist()
    denylist.deny('callers', 'billing')
    const { port } = await startTls({ express, policy: { denylist } })
    const token = boundTo(client)
    const expectStatus = async (status: number): Promise<void> => {
      expect(await call(port, { token, certificate: client })).toMatchObject({ status })
      expect(await call(port, { token, certificate: other })).toMatchObject(REFUSED)
    }
    await expectStatus(403)
    denylist.isKnown = false
    await expectStatus(503)
    denylist.allow('callers', 'billing')
    denylist.isKnown = true
    await expectStatus(200)
    // The token is remembered now.
    denylist.isKnown = false
    await expectStatus(503)
  })

  it('is consumed by its own jti', async () => {
    const { port, events } = await startTls({ express })
    const token = boundTo(client)
    const once = { token, certificate: client, path: '/once' }
    expect(await call(port, once)).toMatchObject({ status: 200 })
    expect(events).toMatchObject([
      { by: 'serviceAuth', confirmation: 'certificate' },
      { by: 'requireSingleUse', confirmation: 'certificate' },
    ])
    expect(await call(port, once)).toMatchObject(REFUSED)
    expect(events.at(-1)).toMatchObject({ reason: 'token_replayed', claim: 'jti' })
  })

  it('is refused by a policy that cannot check it, and unbound ones where one is required', async () => {
    const dpop = { baseUrls: ['https://orders.test'] }
    for (const senderConstraint of [undefined, { dpop }]) {
      const without = await startTls({ express, policy: { senderConstraint } })
      const answer = await call(without.port, { token: boundTo(client), certificate: client })
      expect(answer.status).toBe(401)
      expect(without.last()).toMatchObject({ reason: 'confirmation_unsupported', claim: 'cnf' })
    }
    const both = { 'x5t#S256': client.thumbprint, jkt: 'x' }
    const { port, last } = await startTls({ express })
    const cnfs = [both, { 'x5t#S256': 5 }, { 'x5t#S256': null }, {}, null, '', [], { jwk: {} }]
    for (const cnf of [...cnfs, [client.thumbprint], client.thumbprint, { jkt: 'x' }]) {
      const token = issuer.token({ cnf })
      const answer = await call(port, { token, certificate: client })
      expect(answer, JSON.stringify(cnf)).toMatchObject(REFUSED)
      expect(last()).toMatchObject({ reason: 'confirmation_unsupported', claim: 'cnf' })
    }
    const more = { cnf: { 'x5t#S256': client.thumbprint, 'x-more': [1] } }
    expect(await call(port, { token: issuer.token(more), certificate: client })).toMatchObject({
      status: 200,
    })
    const unbound = { token: issuer.token(), certificate: client }
    expect(await call(port, unbound)).toMatchObject({ status: 200, body: {} })
    expect(last()).toMatchObject({ outcome: 'accepted', confirmation: 'none' })
    const senderConstraint = { mtls: true, required: true } as const
    const strict = await startTls({ express, policy: { senderConstraint } })
    expect(await call(strict.port, unbound)).toMatchObject(REFUSED)
    expect(strict.last()).toMatchObject({ reason: 'confirmation_missing', claim: 'cnf' })
  })

  it('takes the certificate that a function gives, and no other', async () => {
    let given: unknown = client.der
    const mtls = (): Uint8Array => {
      if (given instanceof Error) throw given
      return (typeof given === 'function' ? given() : given) as Uint8Array
    }
    const { port, errors, last } = await startTls({
      express,
      policy: { senderConstraint: { mtls } },
    })
    const token = boundTo(client)
    const ask = () => call(port, { token, certificate: client })
    expect(await ask()).toMatchObject({ status: 200 })
    given = new Uint8Array(client.der)
    expect(await ask()).toMatchObject({ status: 200 })
    given = other.der
    expect(await ask()).toMatchObject(REFUSED)
    given = undefined
    expect(await ask()).toMatchObject(REFUSED)
    expect(last()).toMatchObject({ reason: 'certificate_missing' })
    const cut = client.der.subarray(0, -1)
    const more = Buffer.concat([client.der, Buffer.of(0)])
    const wrong = [client.cert, Buffer.from(client.cert), cut, more, Buffer.of(), null, {}]
    const late = [async () => client.der, () => Promise.reject(new Error('late'))]
    for (const value of [...wrong, publicKey, Buffer.of(0x30, 0), ...late, new Error('down')]) {
      given = value
      expect(await ask()).toMatchObject({ status: 599 })
      const error = errors.at(-1)
      expect(error).toBeInstanceOf(ServiceAuthError)
      expect(error).toMatchObject(
        value instanceof Error ? { code: 'internal', cause: value } : { code: 'wrong_wiring' },
      )
    }
    // An unbound token needs none.
    expect(await call(port, { token: issuer.token() })).toMatchObject({ status: 200 })
  })

  it('is refused on a connection without TLS', async () => {
    const auth = authFor(issuer.policy({ senderConstraint: { mtls: true } }))
    await auth.ready()
    const plain = await startBehind(express, auth)
    expect((await plain.call(boundTo(client))).status).toBe(401)
  })
})

describe('a token bound to a certificate, through authenticate', () => {
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}` })

  it.each([
    ['true', true],
    ['a function', (): never => expect.unreachable('authenticate was given the certificate')],
  ] as const)('is judged by the certificate that is given, where mtls is %s', async (_, mtls) => {
    const auth = authFor(issuer.policy({ senderConstraint: { mtls } }))
    const headers = headersOf(boundTo(client))
    const ask = async (certificate?: Uint8Array) => {
      const answer = await auth.authenticate(headers, { certificate })
      return answer.outcome === 'accepted' ? answer.service.confirmation : answer.reason
    }
    for (const _again of [1, 2]) {
      expect(await ask()).toBe('certificate_missing')
      expect(await ask(other.der)).toBe('certificate_mismatch')
      const confirmation = { kind: 'certificate', thumbprint: client.thumbprint }
      expect(await ask(client.der)).toEqual(confirmation)
    }
    const unbound = await auth.authenticate(headersOf(issuer.token()))
    expect(unbound).toMatchObject({ outcome: 'accepted' })
    expect(unbound).not.toHaveProperty('service.confirmation')
  })

  it('rejects a certificate that is none', async () => {
    const auth = authFor(issuer.policy({ senderConstraint: { mtls: true } }))
    for (const certificate of [client.cert, Buffer.from(client.cert), null, publicKey]) {
      const asked = auth.authenticate(headersOf(boundTo(client)), { certificate } as never)
      await expect(asked).rejects.toMatchObject({ code: 'wrong_wiring' })
    }
  })
})
