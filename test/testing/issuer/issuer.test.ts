import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
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
    expect(issuer.fetches).toBeGreaterThan(0)
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

  it('shares its keySet with whoever asks', async () => {
    const issuer = await start(mode)
    const receiver = await receive(issuer, { keySet: issuer.keySet })
    expect((await receiver.call(issuer.token())).status).toBe(200)
    expect(issuer.keySet.health().keys).toContain(issuer.kid)
    expect(issuer.keySet.health().keys).toContain(issuer.staticKid)
  })

  it('closes more than once', async () => {
    const issuer = await createTestIssuer(mode)
    await Promise.all([issuer.close(), issuer.close()])
    await issuer.close()
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

  it('is another one each time', async () => {
    const issuer = await start({ http: false })
    expect(issuer.token()).not.toBe(issuer.token())
  })
})

it('slow takes a number of milliseconds', async () => {
  const issuer = await start({ http: false })
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY, '5' as never, undefined as never]) {
    expect(() => issuer.slow(ms)).toThrow(TypeError)
  }
})

it('the keys are those of an issuer that was made here', () => {
  expect(() => keyRingOf({} as TestIssuer)).toThrow(TypeError)
})

it.each([
  ['without close', ''],
  [
    'while its key set is slow',
    'issuer.slow(60000); fetch(issuer.jwksUri).catch(() => {}); await issuer.close()',
  ],
])('an issuer holds no process open %s', async (_name, ending) => {
  const source = fileURLToPath(new URL('../../../src/testing/issuer/issuer.ts', import.meta.url))
  const program = `
    import { createTestIssuer } from ${JSON.stringify(source)}
    const issuer = await createTestIssuer()
    await issuer.keySet.ready()
    ${ending}
    console.log('done')
  `
  const child = spawn(process.execPath, [await compileText(program)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stderr.on('data', (chunk) => process.stderr.write(chunk))
  onTestFinished(() => void child.kill('SIGKILL'))
  const printed: Buffer[] = []
  child.stdout.on('data', (chunk) => printed.push(chunk))
  expect(await once(child, 'close')).toEqual([0, null])
  expect(Buffer.concat(printed).toString()).toBe('done\n')
})
