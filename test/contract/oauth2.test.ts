import express5 from 'express'
import {
  type DecisionEvent,
  type OAuth2Policy,
  requirePermissions,
  serviceAuth,
} from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { AUDIENCE, CLIENT, startOAuth2Issuer } from '../support/issuer/oauth2-issuer.js'
import { createOAuth2TestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { FORBIDDEN, INVALID_TOKEN } from '../support/receiver/refusal-bytes.js'

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

describe.each(EXPRESS_MAJORS)('tokens of a real OAuth 2.0 issuer, on $major', ({ express }) => {
  const open = (permission: string) =>
    startReceiver({
      express,
      mount: (app) => app.use(authFor(POLICY), requirePermissions(permission)),
    })

  it('are accepted with their scope, within the ceiling of the caller', async () => {
    const token = await real.token('orders:read orders:write')
    expect((await (await open('orders:read')).call(token)).status).toBe(200)
    const receiver = await open('orders:write')
    expect(await receiver.rawWith(`Bearer ${token}`)).toBe(FORBIDDEN)
  })

  it('are accepted before and after the issuer takes a new key', async () => {
    const receiver = await open('orders:read')
    const before = await real.token('orders:read')
    expect((await receiver.call(before)).status).toBe(200)
    real.rotate()
    const after = await real.token('orders:read')
    expect((await receiver.call(after)).status).toBe(200)
    expect((await receiver.call(before)).status).toBe(200)
  })

  it('are refused for another audience', async () => {
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor({ ...POLICY, audience: 'https://invoices.example.com' })),
    })
    expect(await receiver.rawWith(`Bearer ${await real.token('orders:read')}`)).toBe(INVALID_TOKEN)
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
      acr: '1',
      realm_access: { roles: ['offline_access', 'uma_authorization'] },
      resource_access: { account: { roles: ['view-profile'] } },
      scope: 'orders:read profile email',
      preferred_username: 'service-account-billing',
      clientHost: '10.0.0.7',
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
      azpacr: '1',
      client_id: undefined,
      scope: undefined,
      jti: undefined,
      roles: ['orders:read'],
      nbf: Math.floor(Date.now() / 1000) - 1,
      exp: Math.floor(Date.now() / 1000) + 4000,
      tid: '5d1a2b3c-0000-4000-8000-000000000001',
      uti: 'AAAAAAAAAAAAAAAAAAAAAA',
      ver: '2.0',
    },
  },
}

describe.each(Object.entries(SHAPES))('a token of %s', (_, { policy, header, claims }) => {
  const overrides = policy as Partial<OAuth2Policy>

  it('is accepted, with its permissions', async () => {
    const receiver = await startReceiver({
      express: express5,
      mount: (app) => app.use(authFor(issuer.policy(overrides)), requirePermissions('orders:read')),
    })
    const token = issuer.token(claims as Record<string, unknown>, header as Record<string, unknown>)
    expect((await receiver.call(token)).status).toBe(200)
  })

  it('of a user, for the same client, is refused', async () => {
    const receiver = await startReceiver({
      express: express5,
      mount: (app) => app.use(authFor(issuer.policy(overrides))),
    })
    const user = { ...claims, sub: 'a-user' }
    const token = issuer.token(user, header as Record<string, unknown>)
    expect(await receiver.rawWith(`Bearer ${token}`)).toBe(FORBIDDEN)
  })
})

describe('a refusal of an OAuth 2.0 token', () => {
  it('says why to the operator alone', async () => {
    const events: DecisionEvent[] = []
    const policy = {
      accessTokenType: 'any',
      onDecision: (event: DecisionEvent) => events.push(event),
    }
    const receiver = await startReceiver({
      express: express5,
      mount: (app) => app.use(authFor(issuer.policy(policy as Partial<OAuth2Policy>))),
    })
    const tokens = [
      issuer.token({}, { typ: 'dpop+jwt' }),
      issuer.token({ nonce: 'n' }, { typ: 'JWT' }),
      issuer.token({ scope: ['orders:read'] }),
    ]
    for (const token of tokens) {
      expect(await receiver.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
    }
    expect(events.map((event) => 'reason' in event && [event.reason, event.claim])).toEqual([
      ['token_type_invalid', undefined],
      ['id_token', 'nonce'],
      ['claim_invalid', 'scope'],
    ])
  })

  it('is not remembered: a policy that accepts any typ is another one', async () => {
    const strict = serviceAuth(issuer.policy())
    const any = serviceAuth(issuer.policy({ accessTokenType: 'any' }))
    const token = issuer.token({}, { typ: undefined })
    for (const [auth, status] of [
      [any, 200],
      [strict, 401],
      [any, 200],
    ] as const) {
      const receiver = await startReceiver({ express: express5, mount: (app) => app.use(auth) })
      expect((await receiver.call(token)).status).toBe(status)
    }
  })

  it('does not concern a kid that begins with s-', async () => {
    const receiver = await startReceiver({
      express: express5,
      mount: (app) => app.use(authFor(issuer.policy())),
    })
    expect((await receiver.call(issuer.token({}, { kid: issuer.staticKid }))).status).toBe(200)
  })
})
