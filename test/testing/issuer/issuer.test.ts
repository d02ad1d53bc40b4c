import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { serviceOf } from 'express-service-auth'
import {
  createTestIssuer as createIssuer,
  type TestIssuer,
  type TestIssuerOptions,
} from 'express-service-auth/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { keyRingOf } from '../../../src/testing/issuer/issuer.js'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { compileText } from '../../support/process/compile.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../../support/receiver/receiver.js'

async function start(options?: TestIssuerOptions): Promise<TestIssuer> {
  const issuer = await createTestIssuer(options)
  onTestFinished(() => issuer.close())
  return issuer
}

const receive = (issuer: TestIssuer, overrides = {}) =>
  startReceiver({
    express: EXPRESS_MAJORS[1]?.express as never,
    mount: (app) => app.use(authFor(issuer.policy(overrides))),
    handler: (request, response) => void response.json(serviceOf(request).claims),
  })

const segments = (token: string): Record<string, unknown>[] =>
  token
    .split('.')
    .slice(0, 2)
    .map((segment) => JSON.parse(Buffer.from(segment, 'base64url').toString()))

it('an issuer makes two keys of its own', async () => {
  const issuers = await Promise.all([createIssuer({ http: false }), createIssuer({ http: false })])
  const keys = issuers.map(keyRingOf).flatMap((ring) => [ring.current(), ring.staticKey])
  const moduli = keys.map(({ publicKey }) => publicKey.export({ format: 'jwk' }).n)
  expect(new Set(moduli).size).toBe(4)
  for (const issuer of issuers) {
    onTestFinished(() => issuer.close())
    expect((await (await receive(issuer)).call(issuer.token())).status).toBe(200)
  }
})

describe.each([{ http: true }, { http: false }])('a test issuer with %j', (mode) => {
  it('makes tokens that its policy accepts', async () => {
    const issuer = await start(mode)
    const receiver = await receive(issuer)
    const reply = await receiver.call(issuer.token({ extra: 1 }))
    expect(reply.status).toBe(200)
    expect(JSON.parse(reply.text)).toMatchObject({ sub: 'billing', aud: 'orders', extra: 1 })
    expect((await receiver.call(issuer.token({ aud: 'other' }))).status).toBe(401)
    expect(issuer.fetches).toBe(1)
  })

  it('follows its options in both', async () => {
    const options = { issuer: 'https://core.test', audience: 'a', source: 's', tokenType: 't' }
    const issuer = await start({ ...mode, ...options, caller: 'c', permissions: ['p'] })
    const receiver = await receive(issuer)
    const reply = await receiver.call(issuer.token())
    expect(JSON.parse(reply.text)).toMatchObject({
      iss: 'https://core.test',
      aud: 'a',
      sub: 'c',
      source: 's',
      token_type: 't',
      permissions: ['p'],
    })
  })

  it('is slow, and down, on demand', async () => {
    const issuer = await start(mode)
    const receiver = await receive(issuer)
    issuer.slow(30)
    const started = performance.now()
    expect((await receiver.call(issuer.token())).status).toBe(200)
    expect(performance.now() - started).toBeGreaterThan(25)
    issuer.up()
    issuer.down()
    // A known key needs no fetch; an unknown one cannot be looked for.
    expect((await receiver.call(issuer.token())).status).toBe(200)
    expect((await receiver.call(issuer.token({}, { kid: 'unknown' }))).status).toBe(503)
  })

  it('is up again on demand', async () => {
    const issuer = await start(mode)
    issuer.down()
    await expect(issuer.keySet.ready()).rejects.toThrow()
    issuer.up()
    await issuer.keySet.ready()
  })

  it('rotates its key, and withdraws one', async () => {
    const issuer = await start(mode)
    const receiver = await receive(issuer)
    const first = issuer.kid
    const early = issuer.token()
    expect((await receiver.call(early)).status).toBe(200)
    const second = issuer.rotate()
    expect(issuer.kid).toBe(second)
    expect((await receiver.call(issuer.token())).status).toBe(200)
    expect((await receiver.call(early)).status).toBe(200)
    expect([issuer.remove(first), issuer.remove(first)]).toEqual([true, false])
    await receiver.call(issuer.token({}, { kid: 'unknown' }))
    // Gone from the set; two key ids have been looked up, and a third has to wait.
    expect((await receiver.call(early)).status).toBe(503)
    expect((await receiver.call(issuer.token({}, { kid: first }))).status).toBe(503)
    expect((await receiver.call(issuer.token())).status).toBe(200)
  })

  it('shares its keySet with whoever asks, and closes more than once', async () => {
    const issuer = await start(mode)
    const receiver = await receive(issuer, { keySet: issuer.keySet })
    expect((await receiver.call(issuer.token())).status).toBe(200)
    const { keys } = issuer.keySet.health()
    expect(keys).toEqual(expect.arrayContaining([issuer.kid, issuer.staticKid]))
    await Promise.all([issuer.close(), issuer.close()])
  })
})

describe('a token', () => {
  it('has the header of the core, and what is replaced or left out', async () => {
    const issuer = await start({ http: false })
    const [header] = segments(issuer.token())
    expect(header).toEqual({ kid: issuer.kid, typ: 'JWT', alg: 'RS256' })
    expect(issuer.kid).toMatch(/^d-\d{13}$/)
    expect(issuer.staticKid).toMatch(/^s-[0-9a-f-]{36}$/)
    const [changed, claims] = segments(
      issuer.token({ exp: undefined, sub: 'x' }, { typ: undefined, a: 1 }),
    )
    expect(changed).toEqual({ kid: issuer.kid, alg: 'RS256', a: 1 })
    expect(claims).not.toHaveProperty('exp')
    expect(claims).toMatchObject({ sub: 'x' })
  })

  it('is signed by the key that its kid names, where the issuer has had it', async () => {
    const issuer = await start({ http: false })
    const receiver = await receive(issuer, { staticKeys: 'accept' })
    const first = issuer.kid
    issuer.rotate()
    for (const kid of [first, issuer.staticKid, issuer.kid]) {
      expect((await receiver.call(issuer.token({}, { kid }))).status).toBe(200)
    }
  })

  it('has the claims of the settings, with times by the clock and a new jti each time', async () => {
    const clock = () => 1_800_000_000_999
    const issuer = await start({ http: false, clock, lifetimeSeconds: 60, caller: 'c' })
    const [, claims] = segments(issuer.token())
    expect(claims).toEqual({
      iss: issuer.url,
      aud: 'orders',
      sub: 'c',
      source: 'microservice',
      token_type: 'service-access',
      permissions: ['orders:read', 'orders:write'],
      iat: 1_800_000_000,
      exp: 1_800_000_060,
      jti: expect.any(String),
    })
    expect(segments(issuer.token())[1]?.['jti']).not.toBe(claims?.['jti'])
  })
})

it('slow takes a number of milliseconds', async () => {
  const issuer = await start({ http: false })
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY, '5' as never, undefined as never]) {
    expect(() => issuer.slow(ms)).toThrow(TypeError)
  }
})

it.each([
  ['without close', ''],
  [
    'while its key set is slow',
    'issuer.slow(60000); fetch(issuer.jwksUri).catch(() => {}); await issuer.close()',
  ],
])('an issuer holds no process open %s', async (_name, ending) => {
  const program = await compileText(`
    import { createTestIssuer } from 'express-service-auth/testing'
    const issuer = await createTestIssuer()
    await issuer.keySet.ready()
    ${ending}
    console.log('done')
  `)
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 50_000 })
  expect(stdout).toBe('done\n')
})

it.each<[string, ...unknown[]]>([
  ['issuer', ''],
  ['audience', ['orders']],
  ['source', 1],
  ['tokenType', null],
  ['caller', ''],
  ['permissions', 'orders:read', ['']],
  ['lifetimeSeconds', 0],
  ['http', 'no'],
  ['maxAgeSeconds', -1],
  ['clock', 0],
  ['audiense', 'orders'],
])('a wrong or unknown option %s is a TypeError that names it', async (name, ...values) => {
  for (const value of values) {
    const creating = createIssuer({ [name]: value } as TestIssuerOptions)
    await expect(creating).rejects.toThrow(TypeError)
    await expect(creating).rejects.toThrow(name)
  }
})

it('a policy has the address of the key set unless it is told another', async () => {
  const { policy, url, jwksUri, keySet } = await start()
  expect(policy()).toMatchObject({ issuer: url, jwksUri })
  expect(policy({ issuer: 'https://other.test' })).toMatchObject({ jwksUri })
  expect(policy({ keySet })).not.toHaveProperty('jwksUri')
  expect(policy({ apiBasePath: '/api' })).not.toHaveProperty('jwksUri')
  const local = await start({ http: false })
  expect(local.policy()).toMatchObject({ keySet: local.keySet })
  expect(local.policy()).not.toHaveProperty('jwksUri')
})

it('a key set is served with its max-age, and nothing beside it', async () => {
  const issuer = await start({ maxAgeSeconds: 7 })
  const response = await fetch(issuer.jwksUri)
  expect(response.headers.get('cache-control')).toBe('max-age=7, must-revalidate')
  expect((await fetch(`${issuer.url}/`)).status).toBe(404)
  expect(issuer.fetches).toBe(1)
})
