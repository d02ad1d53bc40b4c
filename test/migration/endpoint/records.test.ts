import { beforeAll, describe, expect, it } from 'vitest'
import type { LegacyUser, LegacyUserQuery } from '../../../src/migration/endpoint/legacy-user.js'
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

/** What becomes of a request about a record, and what came to the core. */
async function migrate(record: (id: string) => unknown, more: (id: string) => object = () => ({})) {
  const id = newId()
  records.set(id, record(id))
  const before = core.imports.length
  const { status } = await endpoint.post(bodyAbout(id, more(id)))
  const { reason, faults } = endpoint.decisions.at(-1) ?? {}
  return { id, status, reason, faults, imported: core.imports.slice(before) }
}

it.each([undefined, null])('a user of whom loadUser gives %s is unknown', async (none) => {
  const { status, reason, faults, imported } = await migrate(() => none)
  expect({ status, reason, faults, imported }).toEqual({
    status: 403,
    reason: 'user_unknown',
    faults: undefined,
    imported: [],
  })
})

describe('the user that is imported', () => {
  it('is made of the record and of the allowlist', async () => {
    const roles = [{ role: 'admin', tenantIds: ['tenant-a'] }]
    const { id, status, imported } = await migrate(
      (id) => ({
        ...both(id),
        organizationIds: ['acme'],
        userMetadata: { theme: 'dark' },
        userRoles: roles,
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
  })

  it('has the tenants of all its organizations, or those of none', async () => {
    const tenants = async (organizationIds: string[], organizationId?: string) => {
      const { imported } = await migrate(
        (id) => ({ ...legacyUser(id), organizationIds }),
        () => (organizationId === undefined ? {} : { organizationId }),
      )
      const methods = (imported[0]?.['loginMethods'] ?? []) as { tenantIds: string[] }[]
      return methods[0]?.tenantIds
    }
    expect(await tenants(['acme', 'globex'], 'globex')).toEqual([
      'tenant-a',
      'tenant-b',
      'tenant-c',
    ])
    expect(await tenants(['acme'])).toEqual(['tenant-a'])
    expect(await tenants([])).toEqual(['public'])
  })

  it('is asked for by what the request says, with a signal', async () => {
    const { id } = await migrate(
      (id) => ({ ...legacyUser(id), organizationIds: ['acme'] }),
      () => ({ organizationId: 'acme' }),
    )
    const { signal, ...query } = asked.at(-1) ?? ({} as LegacyUserQuery)
    expect(query).toEqual({
      issuer: ISSUER,
      externalUserId: id,
      organizationId: 'acme',
      identities: [{ ...PASSWORD_LOGIN, userId: id }],
    })
    expect(signal).toBeInstanceOf(AbortSignal)
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
  const refusedAs = async (
    reason: string,
    record: (id: string) => unknown,
    more?: (id: string) => object,
  ) => {
    const found = await migrate(record, more)
    expect(found).toMatchObject({ status: 403, reason, imported: [] })
    return found
  }
  const own = (id: string) => ({ ...PASSWORD_LOGIN, userId: id })

  it.each<[string, (id: string) => object]>([
    ['an identity of another user', () => ({ identities: [{ ...PASSWORD_LOGIN, userId: 'x' }] })],
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
    await refusedAs('record_differs', legacyUser, more)
  })

  it.each<[string, (id: string) => object]>([
    [
      'a connection that is not allowed',
      (id) => ({
        identities: [...both(id).identities, { provider: 'ldap', connection: 'old', userId: id }],
      }),
    ],
    [
      'an organization that is not allowed',
      (id) => ({
        ...legacyUser(id),
        organizationIds: ['acme', 'unheard'],
      }),
    ],
    [
      'an organization of Object.prototype',
      (id) => ({
        ...legacyUser(id),
        organizationIds: ['constructor'],
      }),
    ],
    [
      'a role in a tenant that is not of its organizations',
      (id) => ({
        ...legacyUser(id),
        organizationIds: ['acme'],
        userRoles: [{ role: 'admin', tenantIds: ['tenant-a', 'tenant-b'] }],
      }),
    ],
  ])('the record has %s', async (_, record) => {
    await refusedAs('record_not_allowed', record)
  })

  it.each<[string, (id: string) => unknown, string]>([
    ['is a text', () => 'user', 'invalid_type'],
    ['has no identities', () => ({}), 'identities: invalid_type'],
    ['has an empty list of them', () => ({ identities: [] }), 'identities: too_small'],
    [
      'says a recipe itself',
      (id) => ({ identities: [{ ...legacyUser(id).identities[0], recipeId: 'passwordless' }] }),
      'identities[0]: unrecognized_keys',
    ],
    [
      'says tenants itself',
      (id) => ({ identities: [{ ...legacyUser(id).identities[0], tenantIds: ['tenant-b'] }] }),
      'identities[0]: unrecognized_keys',
    ],
    [
      'has what JSON cannot hold',
      (id) => ({ ...legacyUser(id), userMetadata: { a: 1n } }),
      'invalid_type',
    ],
  ])('the record %s', async (_, record, fault) => {
    const { faults } = await refusedAs('record_invalid', record)
    expect(faults).toEqual([fault])
  })

  it('the core’s rules and warnings count, and say where', async () => {
    const noHash = (id: string) => ({
      identities: [{ ...legacyUser(id).identities[0], passwordHash: 'x' }],
    })
    const unlinked = (id: string) => ({
      identities: both(id).identities.map((login) => ({ ...login, isPrimary: false })),
    })
    const { faults } = await refusedAs('record_invalid', noHash)
    expect(faults?.[0]).toMatch(/^loginMethods\[0\]\.passwordHash: /)
    const warned = await refusedAs('record_invalid', unlinked)
    expect(warned.faults).toEqual(['loginMethods: no_primary'])
    const lenient = await openEndpoint(core, {
      options: {
        acceptWarnings: ['no_primary'],
        loadUser: ({ externalUserId }) => unlinked(externalUserId) as LegacyUser,
      },
    })
    expect((await lenient.post(bodyAbout(newId()))).status).toBe(200)
  })

  it('a record of many faults: the first of them are told', async () => {
    const devices = Array.from({ length: 50 }, () => ({ secretKey: 1 }))
    const many = (id: string) => ({ ...legacyUser(id), totpDevices: devices })
    const { faults } = await refusedAs('record_invalid', many)
    expect(faults).toHaveLength(20)
  })

  it('a request without an organization, where such users have no tenants', async () => {
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
})

describe('issuers', () => {
  it('one is not told of the users of another, nor gets them by its own record', async () => {
    const id = newId()
    records.set(id, legacyUser(id))
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    const before = core.imports.length
    records.set(id, {
      identities: [{ ...legacyUser(id).identities[0], email: 'attacker@example.com' }],
    })
    const theirs = await endpoint.post(bodyAbout(id), { token: OTHER_TOKEN })
    expect(theirs.status).toBe(403)
    expect(theirs.text).not.toContain(id)
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
  expect(endpoint.decisions.slice(given)).toEqual([
    { by: 'migrationEndpoint', outcome: 'refused', reason: 'token_unknown', status: 401 },
    {
      by: 'migrationEndpoint',
      outcome: 'refused',
      reason: 'body_malformed',
      status: 400,
      issuer: ISSUER,
    },
    {
      by: 'migrationEndpoint',
      outcome: 'refused',
      reason: 'user_unknown',
      status: 403,
      issuer: ISSUER,
      externalUserId: id,
    },
  ])
})
