import { remoteKeySet, serviceAuth } from 'express-service-auth'
import { serviceFetch, tokenSource } from 'express-service-auth/client'
import { coreClient } from 'express-service-auth/migration'
import { expect, it } from 'vitest'
import { addressFault } from '../../src/base/http-address.js'
import { POLICY } from '../support/issuer/signing-keys.js'

it.each([
  'https://core.example/auth/jwt/jwks.json',
  'http://localhost:3000/jwks.json',
  'http://127.0.0.1/jwks.json',
  'http://127.255.3.4/jwks.json',
  'http://2130706433/jwks.json',
  'http://[::1]:8080/jwks.json',
])('takes %s', (address) => {
  expect(addressFault(address, false)).toBeUndefined()
})

it.each([
  ['http://core.example/jwks.json', /https:/],
  ['http://localhost.core.example/jwks.json', /https:/],
  ['http://127.0.0.1.core.example/jwks.json', /https:/],
  ['http://128.0.0.1/jwks.json', /https:/],
  ['http://[::2]/jwks.json', /https:/],
  ['ftp://core.example/jwks.json', /absolute https:/],
  ['file:///etc/jwks.json', /absolute https:/],
  ['/auth/jwt/jwks.json', /absolute https:/],
  ['core.example', /absolute https:/],
  ['https://user@core.example/', /user name/],
  ['https://:secret@core.example/', /password/],
])('refuses %s and says what is wrong', (address, fault) => {
  expect(addressFault(address, false)).toMatch(fault)
})

it('takes http: anywhere once that is allowed, but no password and no other scheme', () => {
  expect(addressFault('http://core.internal/jwks.json', true)).toBeUndefined()
  expect(addressFault('http://user:secret@core.internal/', true)).toMatch(/password/)
  expect(addressFault('data:application/json,{}', true)).toMatch(/absolute/)
})

it('never repeats the address, which may hold a secret', () => {
  expect(addressFault('https://user:secret@core.example/', false)).not.toContain('secret')
})

/** Whether this Node's `fetch` connects to the port at all; nothing listens there. */
async function isBlockedByFetch(port: number): Promise<boolean> {
  const error: unknown = await fetch(`http://127.0.0.1:${port}/`).catch((thrown) => thrown)
  return error instanceof Error && /bad port/.test(String(error.cause))
}

it('refuses exactly the ports that fetch refuses', async () => {
  const below = Array.from({ length: 1025 }, (_, index) => index + 1)
  const above = [1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6697, 10_080]
  const chat = Array.from({ length: 8 }, (_, index) => 6664 + index)
  const around = [...above, ...chat, 6679].flatMap((port) => [port - 1, port, port + 1])
  for (const port of [...below, ...around, 65_535]) {
    const isRefused = addressFault(`http://127.0.0.1:${port}/`, false) !== undefined
    expect(`${port}: ${isRefused}`).toBe(`${port}: ${await isBlockedByFetch(port)}`)
  }
})

it.each<[string, () => unknown]>([
  ['jwksUri of a key set', () => remoteKeySet({ jwksUri: 'https://core.example:6000/jwks' })],
  ['jwksUri', () => serviceAuth({ ...POLICY, jwksUri: 'https://core.example:6000/jwks' })],
  ['issuer', () => serviceAuth({ ...POLICY, issuer: 'https://core.example:6000' })],
  ['baseUrl', () => coreClient({ baseUrl: 'https://core.example:6000', apiKey: 'key' })],
  [
    'core.baseUrl',
    () =>
      tokenSource({
        core: { baseUrl: 'https://core.example:6000', apiKey: 'key' },
        apiDomain: 'https://api.example',
        claims: { aud: 'a', sub: 'b', source: 'c', token_type: 'd', permissions: [] },
      }),
  ],
  [
    'origins[1]',
    () =>
      serviceFetch(
        { token: async () => 'token' },
        { origins: ['https://a.example', 'https://b.example:6000'] },
      ),
  ],
])('is said when a thing is made: %s', (path, make) => {
  const name = path.split(' ', 1)[0]
  expect(make).toThrow(TypeError)
  expect(make).toThrow(`${name} must not have the port 6000: fetch refuses it`)
})
