import { createPublicKey, verify } from 'node:crypto'
import { Agent, get } from 'node:http'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { startIdentityCore } from '../../example-app/identity-core/identity-core.js'
import { API_KEY, fetchKeySet, mintBody, mintedBy, postMint } from './core-client.js'
import { decodeToken } from './decode-token.js'

const NOW_MS = 1_800_000_000_500

const core = await startIdentityCore({ apiKey: API_KEY, clock: () => NOW_MS })
afterAll(() => core.close())

describe('a minted token', () => {
  it('has exactly the header kid, typ, alg, in this order', async () => {
    const { header } = decodeToken(await mintedBy(core.url))
    expect(header).toBe(`{"kid":"d-${NOW_MS}","typ":"JWT","alg":"RS256"}`)
  })

  it('lets the claims of the caller win over those of the core', async () => {
    const payload = { iss: 'https://other.example', iat: 1, exp: 2, nbf: null }
    const token = await mintedBy(core.url, { payload })
    expect(JSON.parse(decodeToken(token).payload)).toEqual(payload)
  })

  it.each([
    [['orders'], 'orders'],
    [
      ['orders', 'billing'],
      ['orders', 'billing'],
    ],
    ['orders', 'orders'],
  ])('turns the audience %j into %j', async (aud, expected) => {
    const token = await mintedBy(core.url, { payload: { aud } })
    expect(JSON.parse(decodeToken(token).payload).aud).toEqual(expected)
  })

  it.each([
    ['application/json; charset=utf-8', 'aufträge €'],
    ['application/json;charset="UTF-8"', 'aufträge €'],
    ['application/json', 'auftrÃ¤ge â\u0082¬'],
    ['application/json; charset=latin1', 'auftrÃ¤ge â\u0082¬'],
    ['application/json;charset=utf-8;charset=latin1', 'auftrÃ¤ge â\u0082¬'],
    ['bogus; charset=utf-8', 'auftrÃ¤ge â\u0082¬'],
    ['', 'auftrÃ¤ge â\u0082¬'],
  ])('reads a body of the type %j in its charset, as ISO-8859-1 without one', async (type, aud) => {
    const body = { ...mintBody(), payload: { aud: 'aufträge €' } }
    const { text } = await postMint(core.url, body, { 'content-type': type })
    const { jwt } = JSON.parse(text) as { jwt: string }
    expect(JSON.parse(decodeToken(jwt).payload).aud).toBe(aud)
  })

  it('is signed by the dynamic key only when the static one is declined', async () => {
    const kidOf = async (change: object) =>
      JSON.parse(decodeToken(await mintedBy(core.url, change)).header).kid as string
    expect(await kidOf({ useStaticSigningKey: false })).toBe(`d-${NOW_MS}`)
    expect(await kidOf({ useStaticSigningKey: true })).toMatch(/^s-[0-9a-f-]{36}$/)
    expect(await kidOf({ useStaticSigningKey: undefined })).toMatch(/^s-/)
  })

  it.each([true, false])('verifies with the published key (static: %s)', async (isStatic) => {
    const token = await mintedBy(core.url, { useStaticSigningKey: isStatic, algorithm: 'rs256' })
    const { kid } = JSON.parse(decodeToken(token).header) as { kid: string }
    const jwk = (await fetchKeySet(core.url)).keys.find((key) => key['kid'] === kid) ?? {}
    const [header, payload, signature = ''] = token.split('.')
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const signed = Buffer.from(`${header}.${payload}`)
    expect(verify('sha256', signed, key, Buffer.from(signature, 'base64url'))).toBe(true)
  })
})

describe('minting', () => {
  it.each([
    ['algorithm', 256],
    ['jwksDomain', null],
    ['payload', 'sub'],
    ['validity', 1.5],
  ])('refuses the field %s with the value %j', async (name, value) => {
    const { status, text } = await postMint(core.url, { ...mintBody(), [name]: value })
    expect({ status, text }).toEqual({
      status: 400,
      text: `Field name '${name}' is invalid in JSON input\n`,
    })
  })
})

describe('the API key', () => {
  it.each([
    ['a wrong one', { 'api-key': 'wrong' }],
    ['an empty one', { 'api-key': '' }],
    ['a longer one', { 'api-key': `${API_KEY}x` }],
  ])('is judged before anything else: %s', async (_, headers) => {
    expect(await postMint(core.url, 'not even JSON', { ...headers, 'cdi-version': '99' })).toEqual({
      status: 401,
      type: 'text/html;charset=UTF-8',
      text: 'Invalid API key\n',
    })
  })

  it('opens the list of interface versions', async () => {
    const headers = { 'api-key': API_KEY }
    const response = await fetch(`${core.url}/apiversion?apiDomain=x`, { headers })
    const { versions } = (await response.json()) as { versions: string[] }
    expect([versions[0], versions.at(-1)]).toEqual(['2.7', '5.4'])
  })

  it('opens those of core 10.1 up to 5.3, and 5.4 is refused', async () => {
    const older = await startIdentityCore({ apiKey: API_KEY, version: '10.1' })
    onTestFinished(older.close)
    const headers = { 'api-key': API_KEY }
    const response = await fetch(`${older.url}/apiversion`, { headers })
    const { versions } = (await response.json()) as { versions: string[] }
    expect(versions.at(-1)).toBe('5.3')
    expect(await postMint(older.url, mintBody(), { 'cdi-version': '5.4' })).toMatchObject({
      status: 400,
      text: 'cdi-version 5.4 not supported\n',
    })
  })
})

describe('the key set', () => {
  it.each([
    ['the core', '/.well-known/jwks.json', () => core.url],
    ['the issuer', '/auth/jwt/jwks.json', () => core.issuer],
  ] as const)('is public at %s: %s, dynamic keys before static ones', async (_, path, url) => {
    const response = await fetch(`${url()}${path}`)
    expect(response.headers.get('content-type')).toBe('application/json;charset=UTF-8')
    const member = {
      kty: 'RSA',
      n: expect.stringMatching(/^[\w-]{342}$/),
      e: 'AQAB',
      alg: 'RS256',
      use: 'sig',
    }
    expect(await response.json()).toStrictEqual({
      keys: [
        { ...member, kid: `d-${NOW_MS}` },
        { ...member, kid: expect.stringMatching(/^s-/) },
      ],
    })
  })

  it('is all that the issuer serves', async () => {
    for (const path of [
      '/.well-known/jwks.json',
      '/recipe/jwt',
      '/apiversion',
      '/recipe/session',
    ]) {
      const response = await fetch(`${core.issuer}${path}`, { headers: { 'api-key': API_KEY } })
      expect([path, response.status]).toEqual([path, 404])
    }
  })

  it('answers 503 or hangs up while it is down, and counts the requests', async () => {
    const before = core.keySetRequests()
    core.setDown(true)
    const addresses = [`${core.url}/.well-known/jwks.json`, `${core.issuer}/auth/jwt/jwks.json`]
    for (const address of addresses) expect((await fetch(address)).status).toBe(503)
    core.setDown(true, 'hang-up')
    for (const address of addresses) await expect(fetch(address)).rejects.toThrow()
    expect(await mintedBy(core.url)).toBeTruthy()
    core.setDown(false)
    for (const address of addresses) expect((await fetch(address)).status).toBe(200)
    expect(core.keySetRequests() - before).toBeGreaterThanOrEqual(6)
  })
})

it.each([
  ['GET', '/', 200, 'Hello'],
  ['POST', '/recipe/jwt/jwks', 405, 'Method not supported'],
  ['PUT', '/recipe/jwt', 405, 'Method not supported'],
  ['POST', '/.well-known/jwks.json', 405, 'Method not supported'],
])('answers %s %s with %d', async (method, path, status, text) => {
  const response = await fetch(`${core.url}${path}`, { method, headers: { 'api-key': API_KEY } })
  expect([response.status, await response.text()]).toEqual([status, `${text}\n`])
})

it('closes a connection after a 400, and after a hundred requests', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  const connectionAfter = (path: string) =>
    new Promise((resolve, reject) => {
      const headers = { 'api-key': API_KEY }
      get(`${core.url}${path}`, { agent, headers }, (response) => {
        response.resume().on('end', () => resolve(response.headers.connection))
      }).on('error', reject)
    })
  expect(await connectionAfter('/appid-nope/apiversion')).toBe('close')
  for (let request = 1; request < 100; request += 1) {
    expect(await connectionAfter('/hello')).toBe('keep-alive')
  }
  expect(await connectionAfter('/hello')).toBe('close')
})
