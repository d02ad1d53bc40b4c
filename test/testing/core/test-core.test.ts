import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import express from 'express'
import { serviceAuth, serviceOf } from 'express-service-auth'
import { serviceFetch, tokenSource } from 'express-service-auth/client'
import { createTestCore, type TestCore, type TestCoreOptions } from 'express-service-auth/testing'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { readFixtures } from '../../core/fixtures/fixture.js'
import { replay } from '../../core/fixtures/replay.js'
import { compileText } from '../../support/process/compile.js'
import { serve } from '../../support/receiver/serve.js'
import { knowToken } from '../../support/secret-search/index.js'

const CLAIMS = {
  aud: 'orders',
  sub: 'billing',
  source: 'microservice',
  token_type: 'service-access',
  permissions: ['orders:read'],
}
const JSON_IN_UTF8 = 'application/json; charset=utf-8'

/** For tests that change nothing. */
const quiet = await createTestCore()
afterAll(() => quiet.close())

async function startCore(options?: TestCoreOptions): Promise<TestCore> {
  const core = await createTestCore(options)
  onTestFinished(() => core.close())
  return core
}

function sourceOf(core: TestCore, timeoutMs = 3000) {
  const { url: baseUrl, apiKey, issuer: apiDomain } = core
  const source = tokenSource({ core: { baseUrl, apiKey }, apiDomain, claims: CLAIMS, timeoutMs })
  onTestFinished(() => source.close())
  return source
}

function post(core: TestCore, change: object = {}, headers: Record<string, string> = {}) {
  const body = { algorithm: 'RS256', jwksDomain: core.issuer, payload: CLAIMS, validity: 300 }
  return fetch(`${core.url}/recipe/jwt`, {
    method: 'POST',
    headers: { 'api-key': core.apiKey, 'content-type': JSON_IN_UTF8, ...headers },
    body: JSON.stringify({ ...body, ...change }),
  })
}

async function mint(core: TestCore, change: object = {}, type = JSON_IN_UTF8) {
  const response = await post(core, change, { 'content-type': type })
  const { jwt } = (await response.json()) as { jwt: string }
  knowToken(jwt)
  const [header, payload] = jwt
    .split('.', 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
  return { header, payload }
}

async function keysAt(url: string): Promise<string[]> {
  const response = await fetch(url)
  expect(response.headers.get('cache-control')).toBe('max-age=3600, must-revalidate')
  const { keys } = (await response.json()) as { keys: { kid: string }[] }
  return keys.map(({ kid }) => kid)
}

it('serves a caller and a receiver, also after its key was rotated', async () => {
  const core = await startCore()
  const auth = serviceAuth({
    issuer: core.issuer,
    audience: 'orders',
    source: 'microservice',
    tokenType: 'service-access',
    callers: ['billing'],
  })
  const app = express().get('/', auth, (req, res) => void res.send(serviceOf(req).name))
  const receiver = await serve(app)
  onTestFinished(async () => {
    auth.close()
    await receiver.close()
  })
  const source = sourceOf(core)
  const call = serviceFetch(source, { origins: [receiver.url] })
  expect(await (await call(receiver.url)).text()).toBe('billing')
  core.rotate()
  const rotated = serviceFetch(sourceOf(core), { origins: [receiver.url] })
  expect((await rotated(receiver.url)).status).toBe(200)
})

const recordings = await readFixtures()
const scenes = ['jwt', 'differences'].flatMap((subject) => recordings.get(subject)?.scenes ?? [])
const MINTS = ['tokens', 'a static key', 'bad requests', 'claims that the caller sets']

it.each(scenes.filter(({ name }) => MINTS.includes(name)))(
  'replies to mint requests as a core has: $name',
  async (scene) => {
    expect(await replay(scene, { url: quiet.url, secrets: { key: quiet.apiKey } })).toEqual([])
  },
)

it('signs with its static key unless asked for the other', async () => {
  const core = await startCore({ clock: () => 1_000_000 })
  const { header, payload } = await mint(core)
  expect(header).toEqual({ kid: expect.stringMatching(/^s-/), typ: 'JWT', alg: 'RS256' })
  expect(payload).toEqual({ ...CLAIMS, iss: core.issuer, iat: 1000, exp: 1300 })
  const { header: other } = await mint(core, { useStaticSigningKey: false })
  expect(other.kid).toMatch(/^d-\d+$/)
})

it('publishes its keys at both addresses, and what a core tells of itself', async () => {
  const core = await startCore()
  const ofCore = await keysAt(`${core.url}/.well-known/jwks.json`)
  expect(await keysAt(`${core.issuer}/auth/jwt/jwks.json`)).toEqual(ofCore)
  const kid = core.rotate()
  expect(await keysAt(`${core.url}/.well-known/jwks.json`)).toEqual([...ofCore, kid])
  expect((await fetch(`${core.url}/auth/jwt/jwks.json`)).status).toBe(404)
  expect(await (await fetch(`${core.url}/hello`)).text()).toBe('Hello\n')
  const headers = { 'api-key': core.apiKey }
  const versions = await (await fetch(`${core.url}/apiversion`, { headers })).json()
  expect(versions).toEqual({ versions: expect.arrayContaining(['2.7', '3.0', '5.4']) })
})

it.each([{ 'api-key': 'wrong' }, { 'api-key': '' }])('refuses %j', async (headers) => {
  const replies = [
    await post(quiet, {}, headers),
    await fetch(`${quiet.url}/apiversion`, { headers }),
    await fetch(`${quiet.url}/apiversion`),
  ]
  for (const reply of replies) {
    expect([reply.status, await reply.text()]).toEqual([401, 'Invalid API key\n'])
  }
})

it('reads UTF-8 only where the charset says so', async () => {
  const payload = { aud: 'aufträge' }
  const ask = (type: string) => mint(quiet, { payload }, type)
  expect((await ask('application/json; charset="UTF-8"')).payload.aud).toBe('aufträge')
  expect((await ask('application/json')).payload.aud).toBe('auftrÃ¤ge')
  const unknown = await post(quiet, {}, { 'content-type': 'application/json; charset=klingon' })
  expect(unknown.status).toBe(500)
})

it('is busy so many times, which a caller waits for', async () => {
  const core = await startCore()
  core.busy(2)
  expect((await post(core)).status).toBe(429)
  await sourceOf(core).ready()
  core.busy(1000)
  await expect(sourceOf(core, 1000).ready()).rejects.toMatchObject({ code: 'core_busy' })
  core.busy(0)
  expect((await post(core)).status).toBe(200)
})

it('is slow on demand, and a stop does not wait for that', async () => {
  const core = await startCore()
  core.delay(60_000)
  await expect(sourceOf(core, 100).ready()).rejects.toMatchObject({ code: 'core_timeout' })
  const unanswered = post(core)
  await expect(Promise.all([unanswered, core.stop()])).rejects.toThrow('fetch failed')
})

it('can be stopped and started, with the same addresses and keys', async () => {
  const core = await startCore()
  const keys = await keysAt(`${core.issuer}/auth/jwt/jwks.json`)
  await core.stop()
  await core.stop()
  await expect(sourceOf(core).ready()).rejects.toMatchObject({ code: 'core_unreachable' })
  await expect(fetch(`${core.issuer}/auth/jwt/jwks.json`)).rejects.toThrow('fetch failed')
  await core.start()
  await core.start()
  await sourceOf(core).ready()
  expect(await keysAt(`${core.issuer}/auth/jwt/jwks.json`)).toEqual(keys)
  await core.close()
  await core.close()
  await expect(core.start()).rejects.toThrow('the test core is closed')
})

it('takes a port, a key and a name, and reports a port that is taken', async () => {
  const core = await startCore({ apiKey: 'local', issuer: 'https://api.example.com' })
  expect(core).toMatchObject({ apiKey: 'local', issuer: 'https://api.example.com' })
  expect((await mint(core)).payload.iss).toBe('https://api.example.com')
  const port = Number(new URL(core.url).port)
  await expect(createTestCore({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
})

it('refuses a wrong or unknown option, delay and number of times', async () => {
  const options = { port: 65_536, apiKey: '', issuer: 7, clock: 7, users: [] }
  for (const [name, value] of Object.entries(options)) {
    await expect(createTestCore({ [name]: value } as TestCoreOptions)).rejects.toThrow(name)
  }
  expect(() => quiet.delay(-1)).toThrow('delay: ms must be')
  expect(() => quiet.busy(0.5)).toThrow('busy: times must be')
})

it('does not keep its process alive', async () => {
  const program = await compileText(`
    import { createTestCore } from 'express-service-auth/testing'
    const core = await createTestCore()
    await core.stop()
    await core.start()
    console.log((await fetch(core.url + '/hello')).status)
  `)
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 50_000 })
  expect(stdout).toBe('200\n')
})
