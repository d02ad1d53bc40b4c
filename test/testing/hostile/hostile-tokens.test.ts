import { validateHeaderValue } from 'node:http'
import { type OAuth2Policy, serviceAuth } from 'express-service-auth'
import { hostileTokens } from 'express-service-auth/testing'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createOAuth2TestIssuer, createTestIssuer } from '../../support/issuer/test-issuer.js'
import { authFor } from '../../support/receiver/receiver.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())
const cases = hostileTokens(issuer)

describe('the catalogue', () => {
  it('has one name for each case, the same in every run', async () => {
    const other = await createTestIssuer({ http: false })
    const names = cases.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(hostileTokens(other).map(({ name }) => name)).toEqual(names)
    await other.close()
  })

  it('has no case that the issuer would have made', () => {
    const values = cases.map(({ authorization }) => authorization)
    // Two are there under two names.
    expect(values.length - new Set(values).size).toBe(2)
    expect(values).toHaveLength(456)
    expect(values).not.toContain(`Bearer ${issuer.token()}`)
  })

  // That a server of Node takes each of them: contract/hostile-tokens.test.ts.
  it('has values that every client can send', () => {
    for (const { authorization } of cases) {
      expect(() => new Headers({ authorization })).not.toThrow()
      expect(() => validateHeaderValue('authorization', authorization)).not.toThrow()
    }
  })

  it('is made for an issuer of createTestIssuer only', () => {
    expect(() => hostileTokens({ ...issuer })).toThrow(TypeError)
  })

  it('holds for other settings of the issuer, too', async () => {
    const settings = { issuer: '1', audience: 'ORDERS', source: '_', tokenType: 'é', caller: 'a' }
    const odd = await createTestIssuer({ ...settings, permissions: [], lifetimeSeconds: 3600 })
    const auth = authFor(odd.policy())
    for (const { authorization, expect: status, orElse, name } of hostileTokens(odd)) {
      const answer = await auth.authenticate({ authorization })
      expect([status, orElse], name).toContain('status' in answer && answer.status)
    }
    const authorization = `Bearer ${odd.token()}`
    expect(await auth.authenticate({ authorization })).toMatchObject({ outcome: 'accepted' })
    await odd.close()
  })
})

/** Why a case is refused, and the reasons that say so. */
const REASONS = {
  'The header is the scheme Bearer, one blank and one token':
    'authorization_malformed confirmation_missing token_malformed',
  'A compact JWS has three segments': 'token_malformed',
  'A token is at most 8 KiB long': 'token_too_long',
  'Segments are base64url, without padding, in one spelling only': 'token_malformed',
  'Header and payload are JSON objects in UTF-8':
    'signature_invalid token_malformed token_too_long',
  'An empty object says nothing': 'algorithm_not_allowed claim_missing:iss',
  'The algorithm is exactly RS256': 'algorithm_not_allowed',
  'Unsigned tokens prove nothing': 'algorithm_not_allowed token_malformed',
  'The public key is no secret to sign with': 'algorithm_not_allowed',
  'Other algorithms are refused, rightly signed or not': 'algorithm_not_allowed signature_invalid',
  'The key id is text of 1 to 256 visible characters': 'key_id_invalid',
  'The key id names a key of the key set, and nothing else':
    'key_not_looked_up key_unknown signature_invalid',
  'Nothing in the header changes how the token is read': 'header_parameter_forbidden',
  'A header with a version is one of a session': 'header_parameter_forbidden',
  'The key comes from the key set, never from the token': 'header_parameter_forbidden',
  'A JWE is no JWS': 'token_malformed',
  'The signature covers header and payload, to the bit':
    'algorithm_not_allowed signature_invalid token_malformed',
  'A token expires, at a number of seconds': 'claim_invalid:exp claim_missing:exp',
  'A token that has expired is of no use': 'token_expired:exp',
  'A token lives for as long as the policy allows, at most': 'token_lifetime_too_long:exp',
  'nbf is a number of seconds, and not in the future': 'claim_invalid:nbf token_not_yet_valid:nbf',
  'iat is a number of seconds, and not in the future': 'claim_invalid:iat token_not_yet_valid:iat',
  'iss is required, and is text': 'claim_invalid:iss claim_missing:iss',
  'sub is required, and is text': 'claim_invalid:sub claim_missing:sub',
  'iss is compared to the letter': 'claim_invalid:iss',
  'Nobody but an approved caller': 'caller_not_approved:sub',
  'Nothing inherited is an approved caller': 'caller_not_approved:sub',
  'Own members named like inherited ones are inert': 'claim_missing:sub',
  'A token id is text of 1 to 256 characters': 'claim_invalid:jti',
  'A bound token is no bearer token': 'confirmation_unsupported:cnf',
  'A user session is no service': 'claim_invalid:iss',
} as const

const SERVICE_REASONS = {
  ...REASONS,
  'Static keys sign no service tokens': 'static_key_refused',
  'aud is required, and is text': 'claim_invalid:aud claim_missing:aud',
  'source is required, and is text': 'claim_invalid:source claim_missing:source',
  'token_type is required, and is text': 'claim_invalid:token_type claim_missing:token_type',
  'aud is compared to the letter': 'claim_invalid:aud',
  'source is compared to the letter': 'claim_invalid:source',
  'token_type is compared to the letter': 'claim_invalid:token_type',
  'Permissions are a list of texts': 'claim_invalid:permissions claim_missing:permissions',
}

const OAUTH2_REASONS = {
  ...REASONS,
  'The typ of an access token is at+jwt': 'token_type_invalid',
  'The audience is the receiver, or a list that contains it': 'claim_invalid:aud claim_missing:aud',
  'A scope is text': 'claim_invalid:scope',
  'An ID token is no access token': 'claim_invalid:aud token_type_invalid',
  'A user of an approved client is no approved caller': 'caller_not_approved:sub',
}

describe('each case', () => {
  it.each([
    ['service tokens', createTestIssuer, {}, SERVICE_REASONS],
    ['OAuth 2.0 access tokens', createOAuth2TestIssuer, {}, OAUTH2_REASONS],
    [
      'OAuth 2.0 access tokens of any typ',
      createOAuth2TestIssuer,
      { accessTokenType: 'any' },
      {
        ...OAUTH2_REASONS,
        'The typ of an access token is at+jwt': 'accepted token_type_invalid',
        'An ID token is no access token': 'claim_invalid:aud id_token:nonce',
      },
    ],
  ])('of %s is refused for what it says', async (_, create, change, expected) => {
    const own = await create({ http: false })
    const seen: string[] = []
    const auth = serviceAuth({
      ...own.policy(),
      ...change,
      onDecision: (event) => {
        const { reason, claim } = { reason: 'accepted', claim: undefined, ...event }
        seen.push(claim === undefined ? reason : `${reason}:${claim}`)
      },
    } as OAuth2Policy)
    onTestFinished(() => Promise.all([auth.close(), own.close()]).then(() => {}))
    const found: Record<string, Set<string>> = {}
    for (const { authorization, why } of hostileTokens(own)) {
      await auth.authenticate({ authorization })
      found[why] = (found[why] ?? new Set()).add(seen.at(-1) ?? '')
    }
    const reasons = Object.entries(found).map(([why, set]) => [why, [...set].sort().join(' ')])
    expect(Object.fromEntries(reasons)).toEqual(expected)
  })

  it.each([
    ['service tokens', createTestIssuer],
    ['OAuth 2.0 access tokens', createOAuth2TestIssuer],
  ])('of %s that is too long has no other fault', async (_, create) => {
    const own = await create()
    onTestFinished(() => own.close())
    const { jwksUri = '', issuer, audience } = own.policy()
    const keys = createLocalJWKSet((await (await fetch(jwksUri)).json()) as JSONWebKeySet)
    const good = await jwtVerify(own.token(), keys)
    let verified = 0
    for (const { authorization, name } of hostileTokens(own)) {
      if (!['8 KiB and one character', 'thousands of permissions'].includes(name)) continue
      const token = authorization.slice('Bearer '.length)
      const { protectedHeader } = await jwtVerify(token, keys, { issuer, audience })
      expect(protectedHeader).toMatchObject(good.protectedHeader)
      verified += 1
    }
    expect(verified).toBe(2)
  })
})
