import express from 'express'
import { tokenSource } from 'express-service-auth/client'
import { decodeJwt } from 'jose'
import * as oauth from 'oauth4webapi'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { thumbprintOf } from '../../src/testing/issuer/bound-token.js'
import { checkProof } from '../../src/verification/confirmation/check-proof.js'
import { parseBaseUrl } from '../../src/verification/confirmation/http-uri.js'
import { API_KEY, CLAIMS } from '../client/claims.js'
import { startIdentityCore } from '../support/core/identity-core/identity-core.js'
import { createOAuth2TestIssuer } from '../support/issuer/test-issuer.js'
import { authFor, startBehind } from '../support/receiver/receiver.js'

const oauth2Issuer = await createOAuth2TestIssuer()
const core = await startIdentityCore({ apiKey: API_KEY })
afterAll(() => Promise.all([oauth2Issuer.close(), core.close()]))

const insecure = { [oauth.allowInsecureRequests]: true }

it('accepts the requests of oauth4webapi, which reads the challenges of its refusals', async () => {
  let auth: ReturnType<typeof authFor> | undefined
  const { url } = await startBehind(express, (req, res, next) => auth?.(req, res, next))
  auth = authFor(oauth2Issuer.policy({ senderConstraint: { dpop: { baseUrls: [url] } } }))
  const handle = oauth.DPoP({}, await oauth.generateKeyPair('ES256'))
  const options = { DPoP: handle, ...insecure }
  const address = new URL(`${url}/orders?a=1`)
  const call = (jkt: string) => {
    const token = oauth2Issuer.token({ cnf: { jkt } })
    return oauth.protectedResourceRequest(token, 'GET', address, undefined, undefined, options)
  }
  expect((await call(await handle.calculateThumbprint())).status).toBe(200)
  await expect(call('another')).rejects.toMatchObject({
    cause: [
      { scheme: 'bearer', parameters: { realm: 'service', error: 'invalid_token' } },
      { scheme: 'dpop', parameters: { algs: 'ES256', error: 'invalid_token' } },
    ],
  })
})

it('makes proofs that oauth4webapi accepts, with the tokens of a policy for OAuth 2.0', async () => {
  const source = tokenSource({
    core: { baseUrl: core.url, apiKey: API_KEY },
    apiDomain: 'https://api.example.com',
    claims: CLAIMS,
    bind: 'dpop',
  })
  onTestFinished(() => source.close())
  const { cnf } = decodeJwt(await source.token())
  // The token of another issuer that is bound to the key of the source.
  const token = oauth2Issuer.token({ cnf })
  const url = 'http://orders.test/orders?a=1'
  const dpop = await source.proof({ method: 'PUT', url, token })
  const headers = { authorization: `DPoP ${token}`, dpop }
  const as = { issuer: oauth2Issuer.url, jwks_uri: oauth2Issuer.jwksUri }
  const options = { ...insecure, requireDPoP: true }
  const judge = (method: string) =>
    oauth.validateJwtAccessToken(as, new Request(url, { method, headers }), 'orders', options)
  expect(await judge('PUT')).toMatchObject({ sub: 'billing', iss: oauth2Issuer.url })
  await expect(judge('POST')).rejects.toThrow()
})

it('accepts the proof of RFC 9449, section 7.1, for its request alone', async () => {
  const proof = [
    'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6Ik',
    'VDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCR',
    'nMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JE',
    'QSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIj',
    'oiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0Z',
    'WRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNF',
    'c05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71E',
    'OptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA',
  ].join('')
  const token = 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU'
  const thumbprint = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I'
  const base = parseBaseUrl('https://resource.example.org')
  if (base === undefined) throw new Error('a base URL')
  const request = { token, method: 'GET', url: '/protectedresource', now: 1562262618 }
  const judge = (changes: object) =>
    checkProof(proof, { kind: 'dpop', thumbprint }, { ...request, baseUrls: [base], ...changes })
  const accepted = { thumbprint, jti: 'e1j3V_bKic8-LAEB', acceptableUntil: 1562262678 }
  expect(await judge({})).toEqual(accepted)
  expect(await judge({ method: 'POST' })).toBe('htm')
  expect(await judge({ token: 'x' })).toBe('ath')
  expect(await judge({ url: '/other' })).toBe('htu')
  expect(await judge({ now: 1562262679 })).toBe('iat')
})

it('makes the thumbprints of RFC 7638 as oauth4webapi does', async () => {
  const pair = await oauth.generateKeyPair('ES256', { extractable: true })
  const { x = '', y = '' } = await crypto.subtle.exportKey('jwk', pair.publicKey)
  const own = thumbprintOf({ y, x, kty: 'EC', crv: 'P-256' })
  expect(own).toBe(await oauth.DPoP({}, pair).calculateThumbprint())
})
