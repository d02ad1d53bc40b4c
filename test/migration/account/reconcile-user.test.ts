import { describe, expect, it } from 'vitest'
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
