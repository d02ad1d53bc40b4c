import { tokenSource } from 'express-service-auth/client'
import { decodeJwt } from 'jose'
import * as oauth from 'oauth4webapi'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { thumbprintOf } from '../../src/testing/issuer/bound-token.js'
import { checkProof } from '../../src/verification/confirmation/check-proof.js'
import { parseBaseUrl } from '../../src/verification/confirmation/http-uri.js'
import { API_KEY, CLAIMS } from '../client/claims.js'
import { startIdentityCore } from '../support/core/identity-core/identity-core.js'
import { createOAuth2TestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startBehind } from '../support/receiver/receiver.js'

const oauth2Issuer = await createOAuth2TestIssuer()
const core = await startIdentityCore({ apiKey: API_KEY })
afterAll(() => Promise.all([oauth2Issuer.close(), core.close()]))

describe.each(EXPRESS_MAJORS)('a receiver on $major', ({ express: major }) => {
  it('accepts the requests of oauth4webapi', async () => {
    let auth: ReturnType<typeof authFor> | undefined
    const { url } = await startBehind(major, (req, res, next) => auth?.(req, res, next))
    auth = authFor(oauth2Issuer.policy({ senderConstraint: { dpop: { baseUrls: [url] } } }))
    const pair = await oauth.generateKeyPair('ES256')
    const handle = oauth.DPoP({}, pair)
    const token = oauth2Issuer.token({ cnf: { jkt: await handle.calculateThumbprint() } })
    const options = { DPoP: handle, [oauth.allowInsecureRequests]: true }
    const address = new URL(`${url}/orders?a=1`)
    const response = await oauth.protectedResourceRequest(
      token,
      'GET',
      address,
      undefined,
      undefined,
      options,
    )
    expect(response.status).toBe(200)
    // It reads the challenge of a refusal as the RFC has it.
    const other = oauth2Issuer.token({ cnf: { jkt: 'another' } })
    const refused = await oauth
      .protectedResourceRequest(other, 'GET', address, undefined, undefined, options)
      .catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(oauth.WWWAuthenticateChallengeError)
    const { cause } = refused as oauth.WWWAuthenticateChallengeError
    expect(cause).toMatchObject([
      { scheme: 'bearer', parameters: { realm: 'service', error: 'invalid_token' } },
      { scheme: 'dpop', parameters: { algs: 'ES256', error: 'invalid_token' } },
    ])
  })
})

describe('our proofs', () => {
  it('are accepted by oauth4webapi, with the tokens that a policy for OAuth 2.0 accepts', async () => {
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
    const options = { [oauth.allowInsecureRequests]: true, requireDPoP: true }
    const judge = (method: string) =>
      oauth.validateJwtAccessToken(as, new Request(url, { method, headers }), 'orders', options)
    expect(await judge('PUT')).toMatchObject({ sub: 'billing', iss: oauth2Issuer.url })
    await expect(judge('POST')).rejects.toThrow()
  })
})

describe('the examples of the RFCs', () => {
  it('RFC 9449, section 7.1: the proof of a request to a protected resource', async () => {
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

  it('RFC 7638: members in the order of their names, as oauth4webapi makes a thumbprint', async () => {
    const pair = await oauth.generateKeyPair('ES256', { extractable: true })
    const { x = '', y = '' } = await crypto.subtle.exportKey('jwk', pair.publicKey)
    const own = thumbprintOf({ y, x, kty: 'EC', crv: 'P-256' })
    expect(own).toBe(await oauth.DPoP({}, pair).calculateThumbprint())
  })
})
