import { describe, expect, it } from 'vitest'
import { findTakenLogin } from '../../../src/migration/account/find-account.js'
import { reconcileUser } from '../../../src/migration/account/reconcile-user.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { type Known, startAccountCore } from './account-core.js'
import { ACCOUNT, CORE_USER_ID, METHODS, RECORD } from './made-account.js'

const ID = RECORD.externalUserId
const KNOWN: Known = {
  mappings: { [ID]: CORE_USER_ID },
  users: { [CORE_USER_ID]: ACCOUNT.user },
  roles: { public: { [ID]: ['editor'] }, shop: { [ID]: ['editor', 'reader'] } },
  metadata: { [ID]: ACCOUNT.metadata },
  totpDevices: { [ID]: ACCOUNT.totpDevices },
}

async function reconcile(known: Known, user: ImportUser = RECORD) {
  const core = await startAccountCore(known)
  const result = await reconcileUser(core.client(), { externalUserId: ID, user })
  return { result, asked: core.requests.map(({ url }) => url) }
}

describe('an identity', () => {
  it('is reconciled when its account is its record', async () => {
    const { result, asked } = await reconcile(KNOWN)
    expect(result).toEqual({
      state: 'found',
      coreUserId: CORE_USER_ID,
      accountId: ID,
      differences: [],
    })
    // The map, the user, two tenants' roles, metadata and devices.
    expect(asked.length).toBe(6)
  })

  it('is asked for nothing that its record does not have', async () => {
    const [method] = RECORD.loginMethods
    const user = { externalUserId: ID, userMetadata: {}, totpDevices: [], loginMethods: [method] }
    const account = { ...ACCOUNT.user, loginMethods: METHODS.slice(1, 2) }
    const { result, asked } = await reconcile(
      { ...KNOWN, users: { [CORE_USER_ID]: account } },
      user,
    )
    expect(result).toMatchObject({ state: 'found', differences: [] })
    expect(asked.length).toBe(2)
  })

  it('is missing without a mapping, and so is one whose account is gone', async () => {
    expect((await reconcile({})).result).toEqual({ state: 'missing' })
    expect((await reconcile({ ...KNOWN, users: {} })).result).toEqual({ state: 'missing' })
  })

  it('is told from one whose account has lost its mapping', async () => {
    const lost = { ...ACCOUNT.user, id: CORE_USER_ID }
    const { result } = await reconcile({ users: { [CORE_USER_ID]: lost } })
    expect(result).toEqual({ state: 'missing', heldBy: CORE_USER_ID })
  })
})

describe('who holds a login', () => {
  const OTHER = 'aaaaaaaa-0000-4000-8000-000000000000'
  const EMAIL = { recipeId: 'emailpassword', email: 'Ann@example.com ' } as const
  const GOOGLE = RECORD.loginMethods[1]
  const PHONE = { recipeId: 'passwordless', phoneNumber: ' +4930123456' } as const
  const heldBy = async (loginMethods: ImportUser['loginMethods'], account: object = {}) => {
    const known = {
      mappings: { 'legacy|2': OTHER },
      users: { [OTHER]: { ...ACCOUNT.user, id: 'legacy|2', isPrimaryUser: false, ...account } },
    }
    return (await findTakenLogin((await startAccountCore(known)).client(), { loginMethods }))
      ?.heldBy
  }

  it.each<[string, ImportUser['loginMethods']]>([
    ['an e-mail address', [EMAIL]],
    ['one in another of its tenants', [{ ...EMAIL, tenantIds: ['SHOP'] }]],
    ['an account of a provider', [GOOGLE]],
    ['a phone number', [PHONE]],
    ['the second of two', [{ ...EMAIL, email: 'nobody@example.com' }, PHONE]],
  ])('is told by the core id: %s', async (_name, methods) => {
    expect(await heldBy(methods)).toBe(OTHER)
  })

  it.each<[string, ImportUser['loginMethods']]>([
    ['an e-mail address of another recipe', [EMAIL]],
    ['the e-mail address of a third party', [{ ...GOOGLE, thirdPartyUserId: 'G-2' }]],
  ])('is nobody: %s', async (_name, methods) => {
    const account = { loginMethods: METHODS.filter(({ recipeId }) => recipeId === 'thirdparty') }
    expect(await heldBy(methods, account)).toBeUndefined()
  })

  it('is another primary user, whatever the recipe', async () => {
    const account = { isPrimaryUser: true, loginMethods: METHODS.slice(2) }
    expect(await heldBy([{ ...EMAIL, isPrimary: true }], account)).toBe(OTHER)
    expect(await heldBy([{ ...GOOGLE, isPrimary: true }], account)).toBe(OTHER)
    expect(await heldBy([EMAIL], account)).toBeUndefined()
  })
})
