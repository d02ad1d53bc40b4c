import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reconcileUser } from '../../../src/migration/account/reconcile-user.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { type StandInCore, startStandInCore } from '../../support/core/stand-in-core.js'
import { RECORD } from './made-account.js'

let core: StandInCore
beforeAll(async () => {
  core = await startStandInCore({ tenants: ['shop'], roles: ['editor', 'reader'] })
})
afterAll(() => core.close())

/** Imports a user of this name, then lets something happen, and looks the identity up. */
async function reconcile(
  name: string,
  { user = RECORD, meanwhile = () => {} }: { user?: ImportUser; meanwhile?: (id: string) => void },
) {
  const asked: string[] = []
  const client = coreClient({
    baseUrl: core.url,
    apiKey: core.apiKey,
    fetch: (input, init) => {
      asked.push(String(input))
      return fetch(input, init)
    },
  })
  // Nobody else has these logins.
  const loginMethods = user.loginMethods.map((method) => ({
    ...method,
    ...(method.email !== undefined && { email: `${name}@example.com` }),
    ...(method.phoneNumber !== undefined && {
      phoneNumber: `+49301234${core.tables.accounts.size}`,
    }),
    ...(method.thirdPartyUserId !== undefined && { thirdPartyUserId: name }),
  }))
  const own: ImportUser = { ...user, externalUserId: name, loginMethods }
  expect(await client.importUser(own)).toMatchObject({ outcome: 'created' })
  const coreUserId = core.tables.coreIds.get(name) ?? ''
  meanwhile(coreUserId)
  asked.length = 0
  const result = await reconcileUser(client, { externalUserId: name, user: own })
  return { result, coreUserId, asked: asked.length }
}

describe('an identity', () => {
  it('is reconciled when its account is its record', async () => {
    const { result, coreUserId, asked } = await reconcile('whole', {})
    const found = { state: 'found', coreUserId, accountId: 'whole', differences: [] }
    expect(result).toEqual(found)
    // The map, the user, two tenants' roles, metadata and devices.
    expect(asked).toBe(6)
  })

  it('is asked for nothing that its record does not have', async () => {
    const [method] = RECORD.loginMethods
    const user: ImportUser = { userMetadata: {}, totpDevices: [], loginMethods: [method] }
    const { result, asked } = await reconcile('bare', { user })
    expect(result).toMatchObject({ state: 'found', differences: [] })
    expect(asked).toBe(2)
  })

  it('is missing when its account is gone, with its mapping or without', async () => {
    const withMapping = (id: string) => core.tables.change({ accountsGone: [id] })
    const without = (id: string) => core.tables.change({ accountsGone: [id], mappingsGone: [id] })
    for (const [name, meanwhile] of Object.entries({ withMapping, without })) {
      expect((await reconcile(name, { meanwhile })).result).toEqual({ state: 'missing' })
    }
  })

  it('is told from one whose account has lost its mapping', async () => {
    const meanwhile = (id: string) => core.tables.change({ mappingsGone: [id] })
    const { result, coreUserId } = await reconcile('lost', { meanwhile })
    expect(result).toEqual({ state: 'missing', heldBy: coreUserId })
  })
})
