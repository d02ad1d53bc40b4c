import { beforeAll, describe, expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import { ok, type Reply, replies, type ScriptedCore, startScriptedCore } from './scripted-core.js'

const ACCOUNT = {
  id: 'legacy-1',
  isPrimaryUser: true,
  tenantIds: ['public'],
  timeJoined: 1_700_000_000_000,
  emails: ['a@example.com'],
  phoneNumbers: [],
  thirdParty: [{ id: 'google', userId: 'g-1' }],
  loginMethods: [
    {
      recipeId: 'thirdparty',
      recipeUserId: 'legacy-1',
      tenantIds: ['public'],
      verified: true,
      timeJoined: 1_700_000_000_000,
      email: 'a@example.com',
      thirdParty: { id: 'google', userId: 'g-1' },
    },
  ],
}
/** What a newer core tells besides. */
const NEWER_ACCOUNT = {
  ...ACCOUNT,
  webauthn: { credentialIds: [] },
  loginMethods: ACCOUNT.loginMethods.map((method) => ({ ...method, webauthn: {} })),
}
const USER = {
  externalUserId: 'legacy-1',
  loginMethods: [{ recipeId: 'passwordless', email: 'a@example.com' }],
} as const
const STAGED = {
  userId: 'legacy-1',
  loginMethods: [
    {
      recipeId: 'passwordless',
      userId: 'core-1',
      tenants: ['public'],
      email: 'a@example.com',
      phoneNumber: null,
    },
  ],
}
const ROW = {
  id: 'core-1',
  status: 'NEW',
  createdAt: 1_700_000_000_000,
  updatedAt: 1_700_000_000_000,
  loginMethods: [],
}

interface Exchange {
  readonly ask: (client: CoreClient) => Promise<unknown>
  readonly sent: readonly [method: string, url: string, body?: unknown]
  readonly reply: Reply
  readonly value: unknown
}

const EXCHANGES: Record<string, Exchange> = {
  'stages users': {
    ask: (client) => client.stageUsers([USER]),
    sent: ['POST', '/bulk-import/users', { users: [USER] }],
    reply: ok({ users: [{ ...STAGED, newer: 1 }] }),
    value: { outcome: 'staged', users: [STAGED] },
  },
  'stages at a core before 10.1.1': {
    ask: (client) => client.stageUsers([USER]),
    sent: ['POST', '/bulk-import/users', { users: [USER] }],
    reply: ok({}),
    value: { outcome: 'staged' },
  },
  'stages what the core rejects': {
    ask: (client) => client.stageUsers([USER]),
    sent: ['POST', '/bulk-import/users', { users: [USER] }],
    reply: replies(400, { error: 'Data has', users: [{ index: 0, errors: ['a', 'b'] }] }),
    value: { outcome: 'rejected', users: [{ index: 0, errors: ['a', 'b'] }] },
  },
  'imports directly': {
    ask: (client) => client.importUser(USER),
    sent: ['POST', '/bulk-import/import', USER],
    reply: ok({ user: NEWER_ACCOUNT }),
    value: { outcome: 'created', user: ACCOUNT },
  },
  'imports what the core rejects': {
    ask: (client) => client.importUser(USER),
    sent: ['POST', '/bulk-import/import', USER],
    reply: replies(400, { errors: ['E031: A user with externalId legacy-1 already exists'] }),
    value: {
      outcome: 'rejected',
      errors: ['E031: A user with externalId legacy-1 already exists'],
    },
  },
  'lists a page of rows': {
    ask: (client) => client.listRows({ status: 'FAILED', limit: 2, paginationToken: 'YTsx+/=' }),
    sent: ['GET', '/bulk-import/users?status=FAILED&limit=2&paginationToken=YTsx%2B%2F%3D'],
    reply: ok({ users: [ROW], nextPaginationToken: 'next' }),
    value: { users: [ROW], nextPaginationToken: 'next' },
  },
  'counts rows': {
    ask: (client) => client.countRows('PROCESSING'),
    sent: ['GET', '/bulk-import/users/count?status=PROCESSING'],
    reply: ok({ count: 0 }),
    value: 0,
  },
  'deletes rows, of which the reply has no status': {
    ask: (client) => client.deleteRows(['a', 'b']),
    sent: ['POST', '/bulk-import/users/remove', { ids: ['a', 'b'] }],
    reply: replies(200, { deletedIds: ['a'], invalidIds: ['b'] }),
    value: { deletedIds: ['a'], invalidIds: ['b'] },
  },
  'finds the core’s id': {
    ask: (client) => client.coreIdOf('auth0|ä b/?&'),
    sent: ['GET', '/recipe/userid/map?userId=auth0%7C%C3%A4%20b%2F%3F%26&userIdType=EXTERNAL'],
    reply: ok({ superTokensUserId: 'core-1', externalUserId: 'auth0|ä b/?&' }),
    value: 'core-1',
  },
  'finds no id': {
    ask: (client) => client.coreIdOf('legacy-1'),
    sent: ['GET', '/recipe/userid/map?userId=legacy-1&userIdType=EXTERNAL'],
    reply: replies(200, { status: 'UNKNOWN_MAPPING_ERROR' }),
    value: undefined,
  },
  'finds an account': {
    ask: (client) => client.user('legacy-1'),
    sent: ['GET', '/user/id?userId=legacy-1'],
    reply: ok({ user: NEWER_ACCOUNT }),
    value: ACCOUNT,
  },
  'finds no account': {
    ask: (client) => client.user('legacy-1'),
    sent: ['GET', '/user/id?userId=legacy-1'],
    reply: replies(200, { status: 'UNKNOWN_USER_ID_ERROR' }),
    value: undefined,
  },
  'finds accounts of a tenant by a login': {
    ask: (client) => client.usersWith('acme', { thirdPartyId: 'google', thirdPartyUserId: 'g+1' }),
    sent: [
      'GET',
      '/acme/users/by-accountinfo?thirdPartyId=google&thirdPartyUserId=g%2B1&doUnionOfAccountInfo=false',
    ],
    reply: ok({ users: [ACCOUNT] }),
    value: [ACCOUNT],
  },
  'finds roles': {
    ask: (client) => client.rolesOf('acme', 'legacy-1'),
    sent: ['GET', '/acme/recipe/user/roles?userId=legacy-1'],
    reply: ok({ roles: ['admin'] }),
    value: ['admin'],
  },
  'finds metadata': {
    ask: (client) => client.metadataOf('legacy-1'),
    sent: ['GET', '/recipe/user/metadata?userId=legacy-1'],
    reply: ok({ metadata: { plan: { name: 'pro' } } }),
    value: { plan: { name: 'pro' } },
  },
  'finds TOTP devices': {
    ask: (client) => client.totpDevicesOf('legacy-1'),
    sent: ['GET', '/recipe/totp/device/list?userId=legacy-1'],
    reply: ok({ devices: [{ name: 'phone', period: 30, skew: 1, verified: true, newer: 1 }] }),
    value: [{ name: 'phone', period: 30, skew: 1, verified: true }],
  },
  'lists tenants, of which providers’ secrets are dropped': {
    ask: (client) => client.tenants(),
    sent: ['GET', '/recipe/multitenancy/tenant/list/v2'],
    reply: ok({
      tenants: [
        {
          tenantId: 'public',
          thirdParty: { providers: [{ thirdPartyId: 'google', clients: [{ clientSecret: 's' }] }] },
          coreConfig: { postgresql_password: 'p' },
        },
        { tenantId: 'acme' },
      ],
    }),
    value: [{ tenantId: 'public' }, { tenantId: 'acme' }],
  },
  'lists roles': {
    ask: (client) => client.roles(),
    sent: ['GET', '/recipe/roles'],
    reply: ok({ roles: ['admin', 'user'] }),
    value: ['admin', 'user'],
  },
  'lists features': {
    ask: (client) => client.features(),
    sent: ['GET', '/ee/featureflag'],
    reply: ok({ features: ['mfa'], usageStats: { maus: [] } }),
    value: ['mfa'],
  },
}

describe('a core client', () => {
  let core: ScriptedCore
  let reply: Reply
  beforeAll(async () => {
    core = await startScriptedCore(() => reply)
  })

  it.each(Object.entries(EXCHANGES))('%s', async (_, exchange) => {
    reply = exchange.reply
    const sent = core.requests.length
    expect(await exchange.ask(core.client())).toStrictEqual(exchange.value)
    const { method, url, body, headers } = core.requests[sent] ?? {}
    const [wantedMethod, wantedUrl, wantedBody] = exchange.sent
    expect([method, url]).toEqual([wantedMethod, wantedUrl])
    expect(body === '' ? undefined : JSON.parse(body ?? '')).toEqual(wantedBody)
    expect(headers?.['content-type']).toBe(wantedBody && 'application/json; charset=utf-8')
    expect(core.requests).toHaveLength(sent + 1)
  })

  it('reads a reply whatever its media type', async () => {
    reply = replies(200, { status: 'OK', count: 3 }, { 'content-type': 'text/html' })
    expect(await core.client().countRows()).toBe(3)
  })

  it('stands below a path', async () => {
    reply = ok({ roles: [] })
    await core.client({ baseUrl: `${core.url}/below/appid-x/` }).rolesOf('acme', 'u')
    expect(core.requests.at(-1)?.url).toBe('/below/appid-x/acme/recipe/user/roles?userId=u')
  })

  it('takes no other account for the one that was asked for', async () => {
    reply = ok({ superTokensUserId: 'core-2', externalUserId: 'legacy-2' })
    const asked = core.client().coreIdOf('legacy-1')
    await expect(asked).rejects.toMatchObject({ code: 'malformed_reply', outcome: 'refused' })
  })

  it('asks for an id that the core trims', async () => {
    reply = ok({ superTokensUserId: 'core-1', externalUserId: 'legacy-1' })
    expect(await core.client().coreIdOf(' legacy-1\n')).toBe('core-1')
  })

  it('sends nothing for what is no tenant, and for half a character', async () => {
    const sent = core.requests.length
    for (const tenantId of ['', '..', 'a/b', 'appid-other']) {
      await expect(core.client().rolesOf(tenantId, 'u')).rejects.toThrow(TypeError)
    }
    await expect(core.client().coreIdOf('a\ud800')).rejects.toThrow(URIError)
    expect(core.requests).toHaveLength(sent)
  })
})
