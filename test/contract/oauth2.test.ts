import express5 from 'express'
import type { OAuth2Policy } from 'express-service-auth'
import { serviceFetch } from 'express-service-auth/client'
import { afterAll, describe, expect, it } from 'vitest'
import { createOAuth2TestIssuer } from '../support/issuer/test-issuer.js'
import { manualClock } from '../support/manual-clock.js'
import { authFor, startBehind } from '../support/receiver/receiver.js'
import { FORBIDDEN, INVALID_TOKEN, UNAVAILABLE } from '../support/receiver/refusal-bytes.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'
import { ENTRIES } from './entries.js'
import { AUDIENCE, CLIENT, startOAuth2Issuer, USER } from './oauth2-issuer.js'

const real = await startOAuth2Issuer()
const issuer = await createOAuth2TestIssuer({ http: false })
afterAll(() => Promise.all([real.close(), issuer.close()]))

const POLICY: OAuth2Policy = {
  tokens: 'oauth2',
  issuer: real.url,
  jwksUri: real.jwksUri,
  audience: AUDIENCE,
  callers: { [CLIENT]: ['orders:read'] },
  permissionsClaim: 'scope',
}
const ACCESS_TOKEN_TYPES = ['at+jwt', 'any'] as const

describe.each(ENTRIES)('tokens of a real OAuth 2.0 issuer, by $entry', ({ open }) => {
  it('are accepted with their scope, within the ceiling of the caller', async () => {
    const token = await real.token('orders:read orders:write')
    const reading = await open(authFor(POLICY), { permissions: 'orders:read' })
    expect(await reading.status(token)).toBe(200)
    expect(reading.accepted).toMatchObject([{ name: CLIENT, issuer: real.url, audience: AUDIENCE }])
    const writing = await open(authFor(POLICY), { permissions: 'orders:write' })
    expect(await writing.rawWith(`Bearer ${token}`)).toBe(FORBIDDEN)
  })

  it('are accepted before and after the issuer takes a new key', async () => {
    const receiver = await open(authFor(POLICY))
    const before = await real.token('orders:read')
    expect(await receiver.status(before)).toBe(200)
    real.rotate()
    const after = await real.token('orders:read')
    expect(await receiver.status(after)).toBe(200)
    expect(await receiver.status(before)).toBe(200)
  })

  it.each(ACCESS_TOKEN_TYPES)('for a user are refused where typ is %s', async (accessTokenType) => {
    const policy = { ...POLICY, accessTokenType }
    const receiver = await open(authFor(policy))
    // Nothing but the `typ` or the nonce is wrong with an ID token for these two.
    const client = { ...policy, audience: CLIENT, callers: [USER] }
    const clientReceiver = await open(authFor(client))
    const { idToken, accessToken } = await real.signIn('nonce')
    expect(await receiver.rawWith(`Bearer ${accessToken}`)).toBe(FORBIDDEN)
    expect(await receiver.rawWith(`Bearer ${idToken}`)).toBe(INVALID_TOKEN)
    expect(await clientReceiver.rawWith(`Bearer ${idToken}`)).toBe(INVALID_TOKEN)
    // Without a nonce only audience and callers keep it out.
    const plain = await real.signIn()
    const strangers = await open(authFor({ ...client, callers: [CLIENT] }))
    expect(await receiver.rawWith(`Bearer ${plain.idToken}`)).toBe(INVALID_TOKEN)
    expect(await strangers.status(plain.idToken)).toBe(accessTokenType === 'any' ? 403 : 401)
  })
})

/** Tokens for a client by client credentials, as the issuers document them, and the policy for each. */
const SHAPES: Record<string, { policy: object; header?: object; claims: object }> = {
  'SuperTokens OAuth2': {
    policy: { permissionsClaim: 'scp', accessTokenType: 'any', callers: ['stcl_1b2c'] },
    header: { typ: 'JWT' },
    claims: {
      sub: 'stcl_1b2c',
      client_id: 'stcl_1b2c',
      aud: ['orders'],
      scp: ['orders:read'],
      scope: undefined,
      nbf: Math.floor(Date.now() / 1000) - 1,
      stt: 1,
      rt_hash: undefined,
    },
  },
  'Auth0, its own profile': {
    policy: {
      permissionsClaim: 'scope',
      accessTokenType: 'any',
      callers: ['mRi0Q0pjhkfu1D7y6KjDQja@clients'],
    },
    header: { typ: 'JWT' },
    claims: {
      sub: 'mRi0Q0pjhkfu1D7y6KjDQja@clients',
      azp: 'mRi0Q0pjhkfu1D7y6KjDQja',
      client_id: undefined,
      jti: undefined,
      scope: 'orders:read',
      gty: 'client-credentials',
    },
  },
  'Auth0, RFC 9068 profile with permissions': {
    policy: { permissionsClaim: 'permissions', callers: ['mRi0Q0pjhkfu1D7y6KjDQja@clients'] },
    claims: {
      sub: 'mRi0Q0pjhkfu1D7y6KjDQja@clients',
      client_id: 'mRi0Q0pjhkfu1D7y6KjDQja',
      scope: 'openid',
      permissions: ['orders:read'],
    },
  },
  Keycloak: {
    policy: {
      permissionsClaim: 'scope',
      accessTokenType: 'any',
      callers: ['9f3b5c0e-3f51-4c7f-8a36-6a1f3d2b7e11'],
    },
    header: { typ: 'JWT' },
    claims: {
      sub: '9f3b5c0e-3f51-4c7f-8a36-6a1f3d2b7e11',
      azp: 'billing',
      client_id: 'billing',
      aud: ['orders', 'account'],
      typ: 'Bearer',
      realm_access: { roles: ['offline_access', 'uma_authorization'] },
      scope: 'orders:read profile email',
      preferred_username: 'service-account-billing',
    },
  },
  'Entra ID, version 2.0': {
    policy: {
      permissionsClaim: 'roles',
      accessTokenType: 'any',
      maxLifetimeSeconds: 5400,
      callers: ['0f6e5b0a-35d3-4a8b-9a2e-5d6f7c8b9a01'],
    },
    header: { typ: 'JWT' },
    claims: {
      sub: '0f6e5b0a-35d3-4a8b-9a2e-5d6f7c8b9a01',
      oid: '0f6e5b0a-35d3-4a8b-9a2e-5d6f7c8b9a01',
      azp: '6731de76-14a6-49ae-97bc-6eba6914391e',
      client_id: undefined,
      scope: undefined,
      jti: undefined,
      roles: ['orders:read'],
      nbf: Math.floor(Date.now() / 1000) - 1,
      exp: Math.floor(Date.now() / 1000) + 4000,
      ver: '2.0',
    },
  },
}

describe.each(ENTRIES)('the published tokens, by $entry', ({ open }) => {
  it.each(Object.entries(SHAPES))(
    'of %s are accepted for a client with its permissions, and refused for a user',
    async (_, { policy, header, claims }) => {
      const auth = authFor(issuer.policy(policy as Partial<OAuth2Policy>))
      const receiver = await open(auth, { permissions: 'orders:read' })
      const token = (changed: object) =>
        issuer.token({ ...claims, ...changed }, header as Record<string, unknown>)
      expect(await receiver.status(token({}))).toBe(200)
      expect(receiver.accepted).toMatchObject([{ audience: 'orders' }])
      expect(await receiver.rawWith(`Bearer ${token({ sub: 'a-user' })}`)).toBe(FORBIDDEN)
    },
  )
})

it('refuses the tokens of Cognito, which have no aud', async () => {
  const claims = { aud: undefined, sub: '1h57kf5cpq17m0eml12EXAMPLE', token_use: 'access' }
  const own = { callers: [claims.sub], accessTokenType: 'any' } as const
  const auth = authFor(issuer.policy(own))
  const authorization = `Bearer ${issuer.token(claims, { typ: undefined })}`
  const answer = await auth.authenticate({ authorization })
  expect(answer).toMatchObject({ outcome: 'refused', status: 401 })
  const withAudience = `Bearer ${issuer.token({ ...claims, aud: 'orders' }, { typ: undefined })}`
  expect(await auth.authenticate({ authorization: withAudience })).toMatchObject({
    outcome: 'accepted',
  })
})

it.each<[string | undefined, 200 | 401, 200 | 401]>([
  ['at+jwt', 200, 200],
  ['AT+JWT', 200, 200],
  ['application/at+jwt', 200, 200],
  ['Application/At+Jwt', 200, 200],
  [undefined, 401, 200],
  ['JWT', 401, 200],
  ['jwt', 401, 200],
  ['application/jwt', 401, 200],
  ['APPLICATION/JWT', 401, 200],
  ['dpop+jwt', 401, 401],
  ['JWT ', 401, 401],
])('answers typ %j with %i, and where any is accepted with %i', async (typ, strict, any) => {
  const authorization = `Bearer ${issuer.token({}, { typ })}`
  const statuses = ACCESS_TOKEN_TYPES.map(async (accessTokenType) => {
    const auth = authFor(issuer.policy({ accessTokenType }))
    const answer = await auth.authenticate({ authorization })
    return answer.outcome === 'accepted' ? 200 : answer.status
  })
  expect(await Promise.all(statuses)).toEqual([strict, any])
})

describe.each(ENTRIES)('an OAuth 2.0 policy, by $entry', ({ open }) => {
  it('has key set, cache, lifetimes and denylists as the default scheme', async () => {
    const clock = manualClock(Date.now())
    const denylist = new ManualDenylist()
    const own = { clock, denylist, keySet: issuer.keySet, maxLifetimeSeconds: 400 }
    const auth = authFor(issuer.policy(own))
    const receiver = await open(auth)
    const token = issuer.token({ jti: 'one' })
    expect([await receiver.status(token), await receiver.status(token)]).toEqual([200, 200])
    expect(auth.health().tokenCache).toMatchObject({ hits: 1, misses: 1 })
    const second = Math.floor(Date.now() / 1000)
    expect(await receiver.status(issuer.token({ exp: second + 500 }))).toBe(401)
    for (const [kind, value, bytes] of [
      ['tokenIds', 'one', INVALID_TOKEN],
      ['keys', issuer.kid, INVALID_TOKEN],
      ['callers', 'billing', FORBIDDEN],
    ] as const) {
      denylist.deny(kind, value)
      expect(await receiver.rawWith(`Bearer ${token}`)).toBe(bytes)
      denylist.allow(kind, value)
    }
    denylist.isKnown = false
    expect(await receiver.rawWith(`Bearer ${token}`)).toBe(UNAVAILABLE)
    denylist.isKnown = true
    expect(await receiver.status(token)).toBe(200)
    clock.advance(306)
    expect(await receiver.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
  })

  it('treats a kid that begins with s- like any other', async () => {
    const receiver = await open(authFor(issuer.policy()))
    expect(await receiver.status(issuer.token({}, { kid: issuer.staticKid }))).toBe(200)
  })
})

it('serviceFetch sends the token of any source', async () => {
  const receiver = await startBehind(express5, authFor(POLICY))
  const asked: unknown[] = []
  const source = {
    token(options: unknown) {
      asked.push(options)
      return real.token('orders:read')
    },
  }
  const response = await serviceFetch(source, { origins: [receiver.url] })(receiver.url)
  expect([response.status, asked.length]).toEqual([200, 1])
})
