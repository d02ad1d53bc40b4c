import { createPublicKey, verify } from 'node:crypto'
import { Agent, get } from 'node:http'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { API_KEY, fetchKeySet, mintBody, mintedBy, postMint } from '../core-client.js'
import { decodeToken } from '../decode-token.js'
import { startIdentityCore } from '../identity-core/identity-core.js'

const NOW_MS = 1_800_000_000_500

const core = await startIdentityCore({ apiKey: API_KEY, clock: () => NOW_MS })
afterAll(() => core.close())

// Its texts, headers and statuses are those of the recordings: test/recordings, test/core/fixtures.

describe('a minted token', () => {
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

describe('the API key', () => {
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

it('closes a connection after a hundred requests', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  const connectionAfter = (path: string) =>
    new Promise((resolve, reject) => {
      const headers = { 'api-key': API_KEY }
      get(`${core.url}${path}`, { agent, headers }, (response) => {
        response.resume().on('end', () => resolve(response.headers.connection))
      }).on('error', reject)
    })
  for (let request = 1; request < 100; request += 1) {
    expect(await connectionAfter('/hello')).toBe('keep-alive')
  }
  expect(await connectionAfter('/hello')).toBe('close')
})
