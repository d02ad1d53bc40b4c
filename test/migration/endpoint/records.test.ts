import { beforeAll, describe, expect, it } from 'vitest'
import type {
  LegacyUser,
  LegacyUserQuery,
} from '../../../src/migration/endpoint/endpoint-options.js'
import { type GatedCore, openGatedCore } from './gated-core.js'
import {
  bodyAbout,
  type Endpoint,
  HASH,
  ISSUER,
  legacyUser,
  newId,
  OTHER_ISSUER,
  OTHER_TOKEN,
  openEndpoint,
  PASSWORD_LOGIN,
  SOCIAL_LOGIN,
} from './kit.js'

let core: GatedCore
let endpoint: Endpoint
/** What `loadUser` gives, by external id; and what it was asked. */
const records = new Map<string, unknown>()
const asked: LegacyUserQuery[] = []

beforeAll(async () => {
  core = await openGatedCore()
  endpoint = await openEndpoint(core, {
    options: {
      loadUser(query) {
        asked.push(query)
        return records.get(query.externalUserId) as LegacyUser | undefined
      },
    },
  })
})

const social = (id: string) => ({
  ...SOCIAL_LOGIN,
  userId: `google-${id}`,
  email: `${id}@example.com`,
})
const both = (id: string): LegacyUser => {
  const [password] = legacyUser(id).identities
  return { identities: [{ ...password, isPrimary: true }, social(id)] as LegacyUser['identities'] }
}
const withLogin = (more: object) => (id: string) => ({
  identities: [{ ...legacyUser(id).identities[0], ...more }],
})
const withMembers = (more: object) => (id: string) => ({ ...legacyUser(id), ...more })

/** The one answer to whoever must not come over. */
const FORBIDDEN = '{"type":"about:blank","title":"Forbidden","status":403}'

/** What becomes of a request about a record, and what came to the core. */
async function migrate(
  record: (id: string) => unknown,
  more: (id: string) => object = () => ({}),
  id = newId(),
) {
  records.set(id, record(id))
  const before = core.imports.length
  const { status, text } = await endpoint.post(bodyAbout(id, more(id)))
  const { reason, faults } = endpoint.decisions.at(-1) ?? {}
  const imported = core.imports.slice(before)
  expect(text === FORBIDDEN).toBe(status === 403)
  return { id, status, reason, faults, imported }
}

describe('the user that is imported', () => {
  it('is made of the record and of the options, and asked for by what the request says', async () => {
    const roles = [{ role: 'admin', tenantIds: ['tenant-a'] }]
    const { id, status, imported } = await migrate(
      (id) => ({
        ...both(id),
        organizationIds: ['acme'],
        userMetadata: { theme: 'dark' },
        userRoles: roles,
        totpDevices: undefined,
      }),
      () => ({ organizationId: 'acme' }),
    )
    expect(status).toBe(200)
    expect(imported).toEqual([
      {
        externalUserId: id,
        userMetadata: { theme: 'dark' },
        userRoles: roles,
        loginMethods: [
          {
            recipeId: 'emailpassword',
            tenantIds: ['tenant-a'],
            email: `${id}@example.com`,
            passwordHash: HASH,
            hashingAlgorithm: 'bcrypt',
            isPrimary: true,
          },
          {
            recipeId: 'thirdparty',
            tenantIds: ['tenant-a'],
            thirdPartyId: 'google',
            thirdPartyUserId: `google-${id}`,
            email: `${id}@example.com`,
          },
        ],
      },
    ])
    const { signal, ...query } = asked.at(-1) ?? ({} as LegacyUserQuery)
    expect(query).toEqual({
      issuer: ISSUER,
      externalUserId: id,
      organizationId: 'acme',
      identities: [{ ...PASSWORD_LOGIN, userId: id }],
    })
    expect(signal).toBeInstanceOf(AbortSignal)
  })

  it.each([
    [['acme', 'globex'], { organizationId: 'globex' }, ['tenant-a', 'tenant-b', 'tenant-c']],
    [['acme'], {}, ['tenant-a']],
    [[], {}, ['public']],
  ])('has the tenants of all its organizations, or those of none: %j', async (ids, more, all) => {
    const { imported } = await migrate(withMembers({ organizationIds: ids }), () => more)
    expect(imported[0]?.['loginMethods']).toMatchObject([{ tenantIds: all }])
  })

  it('has another id at its provider where the record says so', async () => {
    const { imported } = await migrate(
      (id) => ({ identities: [{ ...social(id), thirdPartyUserId: 'other' }] }),
      (id) => ({ identities: [{ ...SOCIAL_LOGIN, userId: `google-${id}` }] }),
    )
    expect(imported[0]?.['loginMethods']).toMatchObject([{ thirdPartyUserId: 'other' }])
  })
})

describe('a user who is not imported', () => {
  const own = (id: string) => ({ ...PASSWORD_LOGIN, userId: id })

  it.each<[string, (id: string) => object]>([
    [
      'an identity of another user beside its own',
      (id) => ({ identities: [own(id), { ...SOCIAL_LOGIN, userId: 'attacker' }] }),
    ],
    [
      'its own id at another connection',
      (id) => ({ identities: [{ ...SOCIAL_LOGIN, userId: id }] }),
    ],
    ['an organization that the record lacks', () => ({ organizationId: 'acme' })],
  ])('the request names %s', async (_, more) => {
    const found = await migrate(legacyUser, more)
    expect(found).toMatchObject({ status: 403, reason: 'record_differs', imported: [] })
  })

  it.each<[string, (id: string) => object]>([
    ['connection', (id) => ({ identities: [{ ...own(id), connection: 'other' }] })],
    ['organization', () => ({ organizationId: 'constructor' })],
  ])('the request names a %s that is not allowed', async (what, more) => {
    const found = await migrate(legacyUser, more)
    expect(found).toMatchObject({ status: 403, reason: `${what}_not_allowed`, imported: [] })
  })

  it.each<[string, (id: string) => object]>([
    [
      'a connection that is not allowed',
      (id) => ({
        identities: [...both(id).identities, { provider: 'ldap', connection: 'old', userId: id }],
      }),
    ],
    ['an organization that is not allowed', withMembers({ organizationIds: ['acme', 'unheard'] })],
    [
      'a role in a tenant that is not of its organizations',
      withMembers({ userRoles: [{ role: 'admin', tenantIds: ['tenant-b'] }] }),
    ],
    [
      'a role in public beside an organization',
      withMembers({
        organizationIds: ['acme'],
        userRoles: [{ role: 'admin', tenantIds: ['public'] }],
      }),
    ],
    ['an organization of Object.prototype', withMembers({ organizationIds: ['constructor'] })],
  ])('the record has %s', async (_, record) => {
    const found = await migrate(record, (id) => ({
      organizationId: undefined,
      identities: [own(id)],
    }))
    expect(found).toMatchObject({ status: 403, reason: 'record_not_allowed', imported: [] })
  })

  it.each<[string, (id: string) => unknown, string[]]>([
    ['has no identities', () => ({}), ['identities: invalid_type']],
    [
      'says its recipe or tenants itself',
      withLogin({ recipeId: 'passwordless', thirdPartyId: 'google', tenantIds: ['tenant-b'] }),
      ['recipeId', 'thirdPartyId', 'tenantIds'].map(
        (name) => `identities[0].${name}: invalid_type`,
      ),
    ],
    ['has what JSON cannot hold', withMembers({ userMetadata: { a: 1n } }), ['invalid_type']],
    [
      'has a hash that the core would refuse',
      withLogin({ passwordHash: 'x' }),
      ['loginMethods[0].passwordHash: invalid_hash'],
    ],
    [
      'has many faults, of which the first are told',
      withMembers({ totpDevices: Array(50).fill({ secretKey: 1 }) }),
      Array.from({ length: 20 }, (_, index) => `totpDevices[${index}].secretKey: wrong_type`),
    ],
    ['has a member that nobody reads', withMembers({ color: 'red' }), ['color: unknown_member']],
  ])('the record %s', async (_, record, faults) => {
    const found = await migrate(record)
    expect(found).toMatchObject({ status: 403, reason: 'record_invalid', faults, imported: [] })
  })

  it.each([undefined, null])('loadUser gives %s', async (none) => {
    const { status, reason, faults, imported } = await migrate(() => none)
    const expected = { status: 403, reason: 'user_unknown', faults: undefined, imported: [] }
    expect({ status, reason, faults, imported }).toEqual(expected)
  })

  it('has a warning, unless it is accepted', async () => {
    const unlinked = (id: string) => ({
      identities: both(id).identities.map((login) => ({ ...login, isPrimary: false })),
    })
    const { status, faults } = await migrate(unlinked)
    expect({ status, faults }).toEqual({ status: 403, faults: ['loginMethods: no_primary'] })
    const lenient = await openEndpoint(core, {
      options: {
        acceptWarnings: ['no_primary'],
        loadUser: ({ externalUserId }) => unlinked(externalUserId) as LegacyUser,
      },
    })
    expect((await lenient.post(bodyAbout(newId()))).status).toBe(200)
  })

  it('has no organization, where such users have no tenants', async () => {
    const closed = await openEndpoint(core, {
      options: {
        issuers: {
          [ISSUER]: {
            tokens: [OTHER_TOKEN],
            organizations: { acme: ['tenant-a'] },
            connections: [{ ...PASSWORD_LOGIN, as: { recipeId: 'emailpassword' } }],
          },
        },
      },
    })
    const { status } = await closed.post(bodyAbout(newId()), { token: OTHER_TOKEN })
    expect([status, closed.decisions[0]?.reason]).toEqual([403, 'record_not_allowed'])
  })

  it('shares a login with an account, or an id with an account of another login', async () => {
    const { id } = await migrate(legacyUser)
    const withItsLogin = withLogin({ email: `${id}@example.com` })
    expect(await migrate(withItsLogin)).toMatchObject({
      status: 403,
      reason: 'account_conflict',
      faults: ['E003'],
    })
    core.changeEmail(id, `somebody-${id}@example.com`)
    const again = await migrate(legacyUser, undefined, id)
    expect(again).toMatchObject({ status: 403, reason: 'account_foreign', imported: [] })
  })

  it('is of another issuer, which is told nothing of it', async () => {
    const { id } = await migrate(legacyUser)
    const before = core.imports.length
    records.set(id, withLogin({ email: 'attacker@example.com' })(id))
    const theirs = await endpoint.post(bodyAbout(id), { token: OTHER_TOKEN })
    expect(theirs).toMatchObject({ status: 403, text: FORBIDDEN })
    expect(endpoint.decisions.at(-1)).toMatchObject({
      reason: 'account_foreign',
      issuer: OTHER_ISSUER,
    })
    expect(asked.at(-1)?.issuer).toBe(OTHER_ISSUER)
    expect(core.imports).toHaveLength(before)
    expect(core.emailsOf(id)).toEqual([`${id}@example.com`])
  })
})

it('decisions hold neither tokens nor login data, and nothing of a request before its checks', async () => {
  const id = newId()
  const given = endpoint.decisions.length
  await endpoint.post(bodyAbout(id), { token: `${OTHER_TOKEN}x` })
  await endpoint.post({ ...bodyAbout(id), more: 1 })
  await endpoint.post(bodyAbout(id))
  const refused = { by: 'migrationEndpoint', outcome: 'refused' }
  expect(endpoint.decisions.slice(given)).toEqual([
    { ...refused, reason: 'token_unknown', status: 401 },
    { ...refused, reason: 'body_malformed', status: 400, issuer: ISSUER },
    { ...refused, reason: 'user_unknown', status: 403, issuer: ISSUER, externalUserId: id },
  ])
})
