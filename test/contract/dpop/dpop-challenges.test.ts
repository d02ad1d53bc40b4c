import type { Request } from 'express'
import {
  acceptOneOf,
  memoryStore,
  requirePermissions,
  requireSingleUse,
  type ServiceAuthPolicy,
  type ServiceChoice,
  serviceAuth,
  serviceCredential,
  serviceOf,
  sessionCredential,
} from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { rawRequest } from '../../support/network/raw-exchange.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { authFor, startBehind, startReceiver } from '../../support/receiver/receiver.js'
import {
  answerOf,
  BASE_URL,
  bearer,
  bound,
  clock,
  DPOP,
  INVALID,
  issuer,
  linesOf,
  open,
  openAuth,
  WAYS,
} from './dpop-kit.js'

const REQUIRED = { ...DPOP, required: true }
const MTLS = { mtls: () => undefined }
const BEARER = 'Bearer realm="service"'
const PROOF = 'DPoP algs="ES256"'
const EITHER = `${BEARER}, ${PROOF}`

type Constraint = ServiceAuthPolicy['senderConstraint']

describe.each(WAYS)('the challenge, through $entry', (way) => {
  it('is for both schemes, or for proofs alone', async () => {
    for (const [senderConstraint, challenge] of [
      [DPOP, EITHER],
      [REQUIRED, PROOF],
      [{ ...REQUIRED, ...MTLS }, EITHER],
      [{ ...MTLS, required: true }, BEARER],
    ] as const) {
      const ask = await open(way, { senderConstraint })
      expect(await ask({ headers: [] })).toMatchObject({ status: 401, challenge })
    }
    const strict = await open(way, { senderConstraint: REQUIRED })
    expect(await strict({ headers: bound({ sub: 'stranger' }).headers() })).toMatchObject({
      status: 403,
      challenge: `${PROOF}, error="insufficient_scope"`,
    })
  })

  it('of several issuers is one, and each has its own binding', async () => {
    const other = await createTestIssuer({ clock, issuer: 'https://other.test' })
    onTestFinished(() => other.close())
    const openBoth = async (one: Constraint, two: Constraint) => {
      const auth = serviceAuth([
        issuer.policy({ senderConstraint: one }),
        other.policy({ senderConstraint: two }),
      ])
      onTestFinished(() => auth.close())
      return openAuth(way, auth)
    }
    for (const [one, two, challenge] of [
      [undefined, undefined, BEARER],
      [DPOP, undefined, EITHER],
      [undefined, REQUIRED, EITHER],
      [REQUIRED, { ...REQUIRED, ...MTLS }, EITHER],
      [REQUIRED, REQUIRED, PROOF],
    ] as const) {
      const ask = await openBoth(one, two)
      expect(await ask({ headers: [] })).toMatchObject({ status: 401, challenge })
    }
    const ask = await openBoth(DPOP, undefined)
    for (const [of, reason] of [
      [issuer, undefined],
      [other, 'confirmation_unsupported'],
    ] as const) {
      const { token, headers } = bound({}, { of })
      for (const _cached of [1, 2]) {
        const answer = await ask({ headers: headers() })
        expect(answer.event['reason']).toBe(reason)
        if (reason !== undefined) expect(answer.challenge).toBe(INVALID)
        expect(await ask({ headers: bearer(token) })).toMatchObject({ status: 401 })
      }
    }
  })
})

describe.each(EXPRESS_MAJORS)('behind other middlewares, on $major', ({ express }) => {
  it('acceptOneOf challenges as its service choice does', async () => {
    const auth = authFor(issuer.policy({ senderConstraint: DPOP }))
    const gate = acceptOneOf([
      { name: 'user', ...sessionCredential((_request, _response, next) => next()) },
      { name: 'service', ...serviceCredential(auth) },
    ])
    const { raw } = await startBehind(express, gate)
    const ask = async (...headers: string[]) => answerOf(await raw({ headers }))
    expect(await ask()).toMatchObject({ challenge: EITHER })
    const { token, headers } = bound()
    const good = linesOf(headers())
    for (const refused of [[...good, 'Cookie: sAccessToken=x'], linesOf(bearer(token))]) {
      expect(await ask(...good)).toMatchObject({ status: 200 })
      expect(await ask(...refused)).toMatchObject({ status: 401, challenge: INVALID })
    }
  })

  it.each<[Constraint, Constraint, ...string[]]>([
    [undefined, undefined, BEARER, BEARER, BEARER],
    [undefined, DPOP, EITHER, BEARER, EITHER],
    [REQUIRED, undefined, EITHER, PROOF, BEARER],
    [REQUIRED, REQUIRED, PROOF, PROOF, PROOF],
  ])(
    'acceptOneOf challenges as its service choices together do, and each as alone: %j, %j',
    async (...row) => {
      const [one, two, ...challenges] = row
      const choices = [one, two].map((senderConstraint, index) => ({
        name: `service-${index}`,
        presented: ({ headers }: Request) => headers['x-choice'] === String(index),
        verify: authFor(issuer.policy({ senderConstraint })),
      }))
      const { raw } = await startBehind(
        express,
        acceptOneOf(choices as [ServiceChoice, ServiceChoice]),
      )
      const asked = [[], ['X-Choice: 0'], ['X-Choice: 1']].map((headers) => raw({ headers }))
      const answers = (await Promise.all(asked)).map((bytes) => answerOf(bytes))
      expect(answers).toMatchObject(challenges.map((challenge) => ({ status: 401, challenge })))
    },
  )

  it('a mounted router, a further serviceAuth and a permission see the same request', async () => {
    const first = authFor(issuer.policy({ senderConstraint: DPOP }))
    const second = authFor(issuer.policy({ senderConstraint: REQUIRED }))
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
    const { key, headers } = bound()
    const ask = async (path: string, sent: readonly string[]) =>
      answerOf(await rawRequest(port, { path, headers: linesOf(sent) }))
    const once = headers({ htu: `${BASE_URL}/api/v1/orders` })
    expect(await ask('/api/v1/orders?x', once)).toMatchObject({ status: 200 })
    expect(seen).toEqual([{ kind: 'dpop', thumbprint: key.thumbprint }, true])
    expect(await ask('/api/v1/orders?x', once)).toMatchObject({
      status: 401,
      challenge: `${PROOF}, error="invalid_token"`,
    })
    const powerless = headers({ htu: `${BASE_URL}/api/v1/all` })
    expect(await ask('/api/v1/all', powerless)).toMatchObject({
      status: 403,
      challenge: `${PROOF}, error="insufficient_scope"`,
    })
  })
})
