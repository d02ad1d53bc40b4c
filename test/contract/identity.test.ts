import type { Request } from 'express'
import {
  memoryStore,
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  type ServiceIdentity,
  serviceOf,
} from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTokenForge } from '../../src/testing/hostile/forge.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import { expectOwnError } from '../support/receiver/own-error.js'
import { authFor, startBehind, startReceiver } from '../support/receiver/receiver.js'
import { FORBIDDEN } from '../support/receiver/refusal-bytes.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

/** What a handler could think of: it throws, or changes what nobody else reads. */
function changeEverything({ permissions, claims }: ServiceIdentity): void {
  Set.prototype.add.call(permissions, 'everything')
  const attempts: (() => unknown)[] = [
    () => (permissions as Set<string>).clear(),
    () => permissions.forEach((_value, _key, set) => void (set as Set<string>).add('everything')),
    () => Object.assign(permissions, { has: () => true }),
    () => Object.assign(claims, { admin: true }),
  ]
  for (const attempt of attempts) expect(attempt).toThrow(TypeError)
}

/** Whatever else carries what a request carries. */
const STAND_INS: readonly [string, (request: Request) => Request][] = [
  ['a copy', (request) => Object.assign(Object.create(Object.getPrototypeOf(request)), request)],
  ['a plain copy', (request) => ({ ...request }) as Request],
  ['an object below it', (request) => Object.create(request)],
  ['a proxy', (request) => new Proxy(request, {})],
]

describe.each(EXPRESS_MAJORS)('the identity of the caller, on $major', ({ express }) => {
  const identify = async (
    token: string,
    policy = issuer.policy(),
  ): Promise<{ identity: ServiceIdentity; request: Request }> => {
    let seen: { identity: ServiceIdentity; request: Request } | undefined
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(policy)),
      handler(request, response) {
        seen = { identity: serviceOf(request), request }
        response.end()
      },
    })
    expect((await receiver.call(token)).status).toBe(200)
    if (seen === undefined) throw new Error('the handler has not run')
    return seen
  }

  it('is req.service and what serviceOf returns', async () => {
    const { identity, request } = await identify(issuer.token({ jti: 'id', extra: 1 }))
    expect(request.service).toBe(identity)
    expect({ ...identity, permissions: [...identity.permissions] }).toEqual({
      name: 'billing',
      permissions: ['orders:read', 'orders:write'],
      issuer: issuer.url,
      audience: 'orders',
      tokenId: 'id',
      issuedAt: identity.claims['iat'],
      expiresAt: identity.claims['exp'],
      keyId: issuer.kid,
      claims: identity.claims,
    })
    expect(identity.claims['extra']).toBe(1)
  })

  it('takes own members named like inherited ones as they are', async () => {
    const forge = createTokenForge(issuer)
    for (const name of ['__proto__', 'constructor', 'hasOwnProperty', 'toString']) {
      const json = '{"polluted":true,"permissions":["everything"]}'
      const { identity } = await identify(forge.withRawClaim(name, json))
      expect([...identity.permissions]).toEqual(['orders:read', 'orders:write'])
      expect(Object.hasOwn(identity.claims, name)).toBe(true)
      expect(identity.claims[name]).toMatchObject({ polluted: true })
      expect(Object.getPrototypeOf(identity.claims)).toBeNull()
      expect('polluted' in {}).toBe(false)
      expect('polluted' in identity.claims).toBe(false)
    }
  })

  it('is nobody whom a handler has put into req.service', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    const forged = { name: 'root', permissions: new Set(['orders:read']) } as never
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use((request, _response, next) => {
          request.service = forged
          next()
        })
        app.use('/permissions', requirePermissions('orders:read'))
        app.use('/once', requireSingleUse({ store }))
        app.use('/key', express.json(), requireIdempotencyKey({ store, operation: 'x' }))
        app.use('/of', (request, _response, next) => {
          serviceOf(request)
          next()
        })
      },
    })
    for (const path of ['/permissions', '/once', '/key', '/of']) {
      const reply = await receiver.call(issuer.token(), { path })
      expect(reply.status).toBe(FAULT_STATUS)
      expectOwnError(receiver.errors.at(-1))
    }
    expect(receiver.handled).toBe(0)
  })

  it('gains nothing from what a handler does to req.service after serviceAuth', async () => {
    const receiver = await startBehind(
      express,
      authFor(issuer.policy()),
      (request, _response, next) => {
        request.service = { ...request.service, permissions: new Set(['everything']) } as never
        next()
      },
      requirePermissions('everything'),
    )
    expect(await receiver.rawWith(`Bearer ${issuer.token()}`)).toBe(FORBIDDEN)
  })

  it('is the same in the next request with the token, whatever a handler does to its parts', async () => {
    const seen: string[] = []
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy())),
      handler(request, response) {
        seen.push(`${[...serviceOf(request).permissions]} ${JSON.stringify(request.service)}`)
        changeEverything(serviceOf(request))
        response.end()
      },
    })
    const token = issuer.token()
    await receiver.call(token)
    await receiver.call(token)
    expect(seen[1]).toBe(seen[0])
    expect(seen[0]).toMatch(/^orders:read,orders:write /)
    expect(receiver.errors).toEqual([])
  })

  it.each(STAND_INS)('belongs to its request, and not to %s', async (_, standInFor) => {
    const receiver = await startBehind(
      express,
      authFor(issuer.policy()),
      (request, response, next) =>
        requirePermissions('orders:read')(standInFor(request), response, next),
    )
    expect((await receiver.call(issuer.token())).status).toBe(FAULT_STATUS)
    expectOwnError(receiver.errors[0], { code: 'wrong_wiring' })
    expect(receiver.handled).toBe(0)
  })
})

it('is of a request, which serviceOf must be given', () => {
  expect(() => serviceOf(undefined as never)).toThrow('serviceOf: must be given the request')
})
