import { describe, expect, it } from 'vitest'
import { checkClaims } from '../../../src/verification/policy/check-claims.js'
import { parsePolicy } from '../../../src/verification/policy/policy.js'

const NOW = 1_800_000_000
const POLICY = {
  tokens: 'oauth2',
  issuer: 'https://tenant.example.com/',
  jwksUri: 'https://tenant.example.com/.well-known/jwks.json',
  audience: 'https://orders.example.com',
  callers: ['billing'],
  permissionsClaim: 'scope',
}
const CLAIMS = {
  iss: POLICY.issuer,
  aud: POLICY.audience,
  sub: 'billing',
  client_id: 'billing',
  exp: NOW + 300,
}

function decide(claims: object, policy: object = {}) {
  const text = JSON.stringify({ ...CLAIMS, ...claims })
  const payload = { text, members: JSON.parse(text) }
  return checkClaims({ keyId: 'k', payload }, parsePolicy({ ...POLICY, ...policy }), NOW)
}

function permissionsOf(claims: object, policy: object = {}): string[] | string {
  const decision = decide(claims, policy)
  return decision.ok ? [...decision.value.identity.permissions] : decision.reason
}

const invalid = (claim: string): object => ({
  reason: 'claim_invalid',
  evidence: { claim, keyId: 'k' },
})

describe('the permissions of an OAuth 2.0 token', () => {
  it.each([
    ['scope', 'read write', ['read', 'write']],
    ['scope', '', []],
    ['scope', '  read   write ', ['read', 'write']],
    ['scope', 'read\twrite', ['read\twrite']],
    ['scope', 'read\u00a0write\n', ['read\u00a0write\n']],
    ['scope', 'read read', ['read']],
    ['scp', 'read write', ['read', 'write']],
    ['scp', ['read', 'write'], ['read', 'write']],
    ['scp', ['read write'], ['read write']],
    ['scp', [], []],
    ['permissions', ['read', 'write'], ['read', 'write']],
    ['roles', ['read'], ['read']],
  ])('in %s %j are %j', (permissionsClaim, value, expected) => {
    expect(permissionsOf({ [permissionsClaim]: value }, { permissionsClaim })).toEqual(expected)
  })

  it.each(['scope', 'scp', 'permissions', 'roles'])('are none without %s', (permissionsClaim) => {
    const others = { scope: 'a', scp: 'a', permissions: ['a'], roles: ['a'] }
    const claims = { ...others, [permissionsClaim]: undefined }
    expect(permissionsOf(claims, { permissionsClaim })).toEqual([])
  })

  it.each<readonly [string, unknown]>([
    ['scope', ['read']],
    ['scope', []],
    ['permissions', 'read'],
    ['roles', 'read'],
    ['roles', ['read', 1]],
    ['scp', ['read', ['write']]],
    ...['scope', 'scp', 'permissions', 'roles'].flatMap((claim) =>
      [null, 1, true, {}, { 0: 'read', length: 1 }].map((value) => [claim, value] as const),
    ),
  ])('in %s %j are refused', (permissionsClaim, value) => {
    expect(decide({ [permissionsClaim]: value }, { permissionsClaim })).toMatchObject(
      invalid(permissionsClaim),
    )
  })

  it('are cut by the ceiling of the caller', () => {
    expect(permissionsOf({ scope: 'read admin' }, { callers: { billing: ['read'] } })).toEqual([
      'read',
    ])
  })
})

describe('the audience of an OAuth 2.0 token', () => {
  it.each([
    [POLICY.audience],
    [[POLICY.audience]],
    [['another', POLICY.audience]],
    [[POLICY.audience, POLICY.audience]],
  ])('may be %j', (aud) => {
    const decision = decide({ aud })
    expect(decision.ok && decision.value.identity.audience).toBe(POLICY.audience)
  })

  it.each([
    [null],
    [[]],
    [['another']],
    [[[POLICY.audience]]],
    [[POLICY.audience, 1]],
    [`${POLICY.audience} another`],
    [{ 0: POLICY.audience }],
  ])('may not be %j', (aud) => {
    expect(decide({ aud })).toMatchObject(invalid('aud'))
  })

  it('is required', () => {
    expect(decide({ aud: undefined })).toMatchObject({ reason: 'claim_missing' })
  })
})

describe('a token that is no access token', () => {
  const MARKS = [
    { nonce: 'n' },
    { nonce: null },
    { at_hash: 'x' },
    { c_hash: 'x' },
    { s_hash: 'x' },
    { events: {} },
    { typ: 'ID' },
    { typ: 'Refresh' },
    { typ: 'Logout' },
  ]

  it.each(MARKS)('is refused for %j where any typ is accepted', (claims) => {
    expect(decide(claims, { accessTokenType: 'any' })).toMatchObject({
      reason: 'id_token',
      evidence: { claim: Object.keys(claims)[0], keyId: 'k' },
    })
  })

  it.each(MARKS)('is kept out by its header otherwise, so %j says nothing', (claims) => {
    expect(decide(claims).ok).toBe(true)
  })

  it.each([{ typ: 'Bearer' }, { typ: 'id' }, { azp: 'another' }, { client_id: 'another' }])(
    'is not shown by %j',
    (claims) => {
      expect(decide(claims, { accessTokenType: 'any' }).ok).toBe(true)
    },
  )
})

describe('a user whose token has an approved client', () => {
  it('is no approved caller', () => {
    expect(decide({ sub: 'auth0|1', azp: 'billing' })).toMatchObject({
      reason: 'caller_not_approved',
    })
  })
})

describe('a policy for OAuth 2.0 tokens', () => {
  it.each([
    [{ permissionsClaim: undefined }, 'permissionsClaim must be'],
    [{ permissionsClaim: 'scopes' }, "permissionsClaim must be 'scope', 'scp'"],
    [{ accessTokenType: 'jwt' }, "accessTokenType must be 'at+jwt' or 'any'"],
    [{ source: 'microservice' }, "source is only for tokens: 'service'"],
    [{ tokenType: 'x' }, "tokenType is only for tokens: 'service'"],
    [{ staticKeys: 'accept' }, "staticKeys is only for tokens: 'service'"],
    [{ apiBasePath: '/auth' }, "apiBasePath is only for tokens: 'service'"],
    [{ jwksUri: undefined }, "jwksUri or keySet is required with tokens: 'oauth2'"],
  ])('with %j is a TypeError', (change, message) => {
    const members = Object.entries({ ...POLICY, ...change }).filter(
      ([, value]) => value !== undefined,
    )
    expect(() => parsePolicy(Object.fromEntries(members))).toThrow(TypeError)
    expect(() => parsePolicy(Object.fromEntries(members))).toThrow(message)
  })

  it.each(['OAUTH2', 'oauth', 'jwt', '', null, true, ['oauth2']])(
    'with tokens %j is judged as one for service tokens',
    (tokens) => {
      const policy = { ...POLICY, source: 's', audience: 5, tokens }
      expect(() => parsePolicy(policy, '[1]')).toThrow(
        /^serviceAuth policy\[1\]: .*audience must .*; tokens must be 'service' or 'oauth2'; tokenType must/,
      )
    },
  )

  it('without a key set has that one fault, also if its issuer ends with a slash', () => {
    const { jwksUri: _, ...policy } = { ...POLICY, issuer: 'https://tenant.auth0.example/' }
    expect(() => parsePolicy(policy)).toThrow(
      new TypeError("serviceAuth policy: jwksUri or keySet is required with tokens: 'oauth2'"),
    )
  })

  it('has members that the default scheme does not', () => {
    const policy = { ...POLICY, source: 's', tokenType: 't', accessTokenType: 'any' }
    for (const tokens of [undefined, 'service']) {
      expect(() => parsePolicy({ ...policy, tokens })).toThrow(
        "permissionsClaim is only for tokens: 'oauth2'; accessTokenType is only for",
      )
    }
  })
})
