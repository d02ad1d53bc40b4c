import { createTestIssuer, type TestIssuerOptions } from 'express-service-auth/testing'
import { expect, it, onTestFinished } from 'vitest'
import {
  claimsOf,
  parseIssuerSettings,
  policyOf,
} from '../../../src/testing/issuer/issuer-settings.js'

it.each<[string, unknown]>([
  ['issuer', ''],
  ['audience', ['orders']],
  ['source', 1],
  ['tokenType', null],
  ['caller', ''],
  ['permissions', 'orders:read'],
  ['permissions', ['']],
  ['lifetimeSeconds', 0],
  ['http', 'no'],
  ['maxAgeSeconds', -1],
  ['clock', 0],
  ['audiense', 'orders'],
])('an issuer with a wrong %s (%j) is a TypeError that names it', async (name, value) => {
  const options = { [name]: value } as TestIssuerOptions
  await expect(createTestIssuer(options)).rejects.toThrow(TypeError)
  await expect(createTestIssuer(options)).rejects.toThrow(name)
})

it('claims are what the settings say, with times by the clock and a fresh jti', () => {
  const settings = parseIssuerSettings({
    clock: () => 1_800_000_000_999,
    lifetimeSeconds: 60,
    caller: 'c',
  })
  const claims = claimsOf('https://x.test', settings)
  expect(claims).toEqual({
    iss: 'https://x.test',
    aud: 'orders',
    sub: 'c',
    source: 'microservice',
    token_type: 'service-access',
    permissions: ['orders:read', 'orders:write'],
    iat: 1_800_000_000,
    exp: 1_800_000_060,
    jti: expect.any(String),
  })
  expect(claimsOf('https://x.test', settings)['jti']).not.toBe(claims['jti'])
})

it('a policy has the address of the key set unless it is told another', async () => {
  const issuer = await createTestIssuer({ http: false })
  onTestFinished(() => issuer.close())
  const { url, jwksUri, keySet } = issuer
  const served = { ...parseIssuerSettings({}), url, jwksUri, keySet }
  expect(policyOf(served)).toMatchObject({ issuer: url, jwksUri })
  expect(policyOf({ ...served, http: false })).toMatchObject({ keySet })
  expect(policyOf({ ...served, http: false })).not.toHaveProperty('jwksUri')
  expect(policyOf(served, { keySet })).not.toHaveProperty('jwksUri')
  expect(policyOf(served, { apiBasePath: '/api' })).not.toHaveProperty('jwksUri')
  expect(policyOf(served, { issuer: 'https://other.test' })).toMatchObject({ jwksUri })
})
