import { afterAll, describe, expect, it } from 'vitest'
import { importOne } from '../../../src/migration/account/import-one.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import { signIn } from '../../support/core/core-client.js'
import { startStandInCore } from '../../support/core/stand-in-core.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { memoryJournal } from '../run/support/memory-journal.js'
import { sourceOf } from '../run/support/people.js'
import { QUICK_TIMING } from '../run/support/quick-timing.js'

const TEXTS = {
  'Latin-1': 'ëß',
  'the euro sign': '€',
  'an emoji': '👩🏽‍🚀',
  Arabic: 'مرحبا',
  'combining marks': 'z̴̐a̋',
  'a composed character': '\u00e9',
  'the same, decomposed': 'e\u0301',
  'the last plane': '\u{10fffd}',
}
const NAMES = Object.keys(TEXTS) as (keyof typeof TEXTS)[]

/** A user with the text in each member that may hold any. */
function userWith(prefix: string, text: string): ImportUser {
  const plainTextPassword = `pass-${prefix}-${text}`
  const secretKey = `key-${prefix}-${text}`
  knowSecret('a password', plainTextPassword)
  knowSecret('an encryption key', secretKey)
  return {
    externalUserId: `${prefix}|${text}`,
    userMetadata: { [`name ${text}`]: [`value ${text}`] },
    userRoles: [{ role: `role ${text}`, tenantIds: ['public'] }],
    totpDevices: [{ secretKey, deviceName: `device ${text}` }],
    loginMethods: [
      {
        recipeId: 'emailpassword',
        email: `${prefix}.${text}@example.com`,
        plainTextPassword,
        isPrimary: true,
      },
      {
        recipeId: 'thirdparty',
        email: `${prefix}.3.${text}@example.com`,
        thirdPartyId: `p-${text}`,
        thirdPartyUserId: `${prefix}-${text}`,
      },
      {
        recipeId: 'passwordless',
        email: `${prefix}.pl.${text}@example.com`,
        phoneNumber: `${prefix} ${text}`,
      },
    ],
  }
}

const standIn = await startStandInCore({ roles: NAMES.map((name) => `role ${TEXTS[name]}`) })
afterAll(() => standIn.close())

const client = () => coreClient({ baseUrl: standIn.url, apiKey: standIn.apiKey })

/** What the core has of the user, by its own answers and its tables. */
async function assertKept({ externalUserId = '', loginMethods, ...user }: ImportUser) {
  const core = client()
  const coreId = await core.coreIdOf(externalUserId)
  const account = coreId === undefined ? undefined : await core.user(coreId)
  const kept = account?.loginMethods.map(({ recipeId, email, phoneNumber, thirdParty }) => ({
    recipeId,
    email,
    ...(phoneNumber !== undefined && { phoneNumber }),
    ...(thirdParty && { thirdPartyId: thirdParty.id, thirdPartyUserId: thirdParty.userId }),
  }))
  expect(account?.id).toBe(externalUserId)
  expect(new Set(kept)).toEqual(
    new Set(loginMethods.map(({ plainTextPassword: _, isPrimary: __, ...method }) => method)),
  )
  expect(await core.metadataOf(externalUserId)).toEqual(user.userMetadata)
  expect(await core.rolesOf('public', externalUserId)).toEqual([user.userRoles?.[0]?.role])
  const devices = await standIn.query(
    'select device_name as name, secret_key as key from totp_user_devices where user_id = $1',
    [externalUserId],
  )
  expect(devices).toEqual(
    user.totpDevices?.map(({ deviceName, secretKey }) => ({ name: deviceName, key: secretKey })),
  )
  const [{ email, plainTextPassword: password } = {}] = loginMethods
  const { body } = await signIn(standIn, { email, password })
  expect(body).toMatchObject({ status: 'OK', user: { id: externalUserId } })
  const wrong = await signIn(standIn, { email, password: `${password}x` })
  expect(wrong.body).toEqual({ status: 'WRONG_CREDENTIALS_ERROR' })
}

describe('each text that is sent to the core is kept as it is, up to the password', () => {
  it.each(NAMES)('by direct import: %s', async (name) => {
    const user = userWith('direct', TEXTS[name])
    expect(await importOne(client(), user)).toMatchObject({
      outcome: 'created',
      userId: user.externalUserId,
    })
    await assertKept(user)
    expect(await importOne(client(), user)).toMatchObject({ outcome: 'existing' })
  })

  it('by a migration', async () => {
    const users = NAMES.map((name) => userWith('bulk', TEXTS[name]))
    const migration = await openMigrationWith(
      {
        core: client(),
        source: sourceOf(users),
        journal: memoryJournal(),
        acceptWarnings: ['phone_not_e164'],
        onProgress: ({ type }) => (type === 'waiting' ? standIn.runJob() : undefined),
      },
      QUICK_TIMING,
    )
    expect(await migration.run()).toMatchObject({
      state: 'complete',
      counts: { reconciled: users.length },
    })
    for (const user of users) await assertKept(user)
    await migration.close()
  })
})
