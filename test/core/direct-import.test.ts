import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type Answer,
  type CoreUnderTest,
  openCore,
  refusal,
  uniqueName,
} from './core-under-test.js'
import { type Conflict, expectText } from './known-faults.js'
import { person, phoneNumber, withPassword, withPhone, withProvider } from './people.js'

let core: CoreUnderTest

beforeAll(async () => {
  core = await openCore()
})
afterAll(() => core?.close())

function refused(...errors: string[]) {
  return refusal(400, JSON.stringify({ errors }))
}

/**
 * The core names the conflict; before 12.0.9 it hands on the error of its database for some, or says
 * `translated` and nothing else.
 */
function expectConflict({ status, json }: Answer, text: string, conflict: Conflict): void {
  const [error, ...others] = json.errors
  expect({ status, others }).toEqual({ status: 400, others: [] })
  expectText({ version: core.version, conflict }, error, text)
}

describe('a direct import', () => {
  it('answers with the account, under its external id', async () => {
    const user = person()
    const answer = await core.importUser(user)
    const [method] = user.loginMethods
    expect(answer).toMatchObject({ status: 200, type: 'application/json;charset=UTF-8' })
    expect(answer.json).toMatchObject({
      status: 'OK',
      user: {
        id: user.externalUserId,
        isPrimaryUser: false,
        tenantIds: ['public'],
        timeJoined: method?.timeJoinedInMSSinceEpoch,
        emails: [method?.email],
        phoneNumbers: [],
        thirdParty: [],
        loginMethods: [
          {
            tenantIds: ['public'],
            recipeUserId: user.externalUserId,
            verified: false,
            timeJoined: method?.timeJoinedInMSSinceEpoch,
            recipeId: 'emailpassword',
            email: method?.email,
          },
        ],
      },
    })
  })

  it('leaves no row', async () => {
    const user = person()
    await core.importUser(user)
    const { json } = await core.get('/bulk-import/users?limit=500')
    const staged = json.users.map((row: { externalUserId: string }) => row.externalUserId)
    expect(staged).not.toContain(user.externalUserId)
  })

  it('refuses what is invalid by the texts alone', async () => {
    const user = person({ loginMethods: [{ recipeId: 'thirdparty' }] })
    expect(await core.importUser(user)).toMatchObject(
      refused(
        'email is required for a thirdparty recipe.',
        'thirdPartyId is required for a thirdparty recipe.',
        'thirdPartyUserId is required for a thirdparty recipe.',
      ),
    )
  })

  it('takes the address as normalised: trimmed and in lower case', async () => {
    const name = uniqueName('user')
    const user = person({ loginMethods: [withPassword(` ${name.toUpperCase()}@Example.com `)] })
    const { json } = await core.importUser(user)
    expect(json.user.emails).toEqual([`${name}@example.com`])
  })

  it('verifies an address when it is told so, and takes a number without one as verified', async () => {
    const verified = async (login: object) => {
      const { json } = await core.importUser(person({ loginMethods: [login] }))
      return json.user.loginMethods[0].verified
    }
    const isVerified = true
    expect(await verified(withPassword(`${uniqueName('user')}@example.com`, { isVerified }))).toBe(
      true,
    )
    expect(await verified(withPhone(phoneNumber()))).toBe(true)
    const email = `${uniqueName('user')}@example.com`
    expect(await verified(withPhone(phoneNumber(), { email }))).toBe(false)
  })
})

describe('what another account holds', () => {
  it('is refused when the import is repeated: by the login, not by the id', async () => {
    const user = person()
    await core.importUser(user)
    const email = user.loginMethods[0]?.email
    expect(await core.importUser(user)).toMatchObject(
      refused(`E003: A user with email ${email} already exists in emailpassword loginMethod.`),
    )
  })

  it('is refused by its pair of provider and user', async () => {
    const email = `${uniqueName('user')}@example.com`
    const login = withProvider(email)
    await core.importUser(person({ loginMethods: [login] }))
    const pair = `thirdPartyId google and thirdPartyUserId ${login.thirdPartyUserId}`
    expectConflict(
      await core.importUser(person({ loginMethods: [login] })),
      `E005: A user with ${pair} already exists in thirdparty loginMethod.`,
      'provider',
    )
  })

  it('is refused by address and by number of a passwordless login', async () => {
    const email = `${uniqueName('user')}@example.com`
    const number = phoneNumber()
    await core.importUser(person({ loginMethods: [withPhone(number, { email })] }))
    const byEmail = person({ loginMethods: [{ recipeId: 'passwordless', email }] })
    expectConflict(
      await core.importUser(byEmail),
      `E006: A user with email ${email} already exists in passwordless loginMethod.`,
      'passwordless',
    )
    const byNumber = person({ loginMethods: [withPhone(number)] })
    expectConflict(
      await core.importUser(byNumber),
      `E007: A user with phoneNumber ${number} already exists in passwordless loginMethod.`,
      'passwordless',
    )
  })

  it('is refused by the external id alone', async () => {
    const user = person()
    await core.importUser(user)
    const other = person({ externalUserId: user.externalUserId })
    expectConflict(
      await core.importUser(other),
      `E031: A user with externalId ${user.externalUserId} already exists`,
      'external_id',
    )
  })

  it('is refused when the external id is an id of the core', async () => {
    const user = person()
    await core.importUser(user)
    const map = await core.get(`/recipe/userid/map?userId=${user.externalUserId}`)
    const { status, json } = await core.importUser(
      person({ externalUserId: map.json.superTokensUserId }),
    )
    expect(status).toBe(400)
    expect(json.errors).toEqual([expect.stringMatching(/^E030: /)])
  })

  it('leaves nothing of an import that was refused at its end', async () => {
    const taken = person()
    await core.importUser(taken)
    const late = person({ externalUserId: taken.externalUserId })
    await core.importUser(late)
    const email = late.loginMethods[0]?.email ?? ''
    const path = `/users/by-accountinfo?doUnionOfAccountInfo=false&email=${encodeURIComponent(email)}`
    expect((await core.get(path)).json).toEqual({ status: 'OK', users: [] })
  })
})

describe('with account linking', () => {
  it('makes one account of several methods, the primary one under the external id', async (test) => {
    if (!hasLinking()) return test.skip('the licence has no account linking')
    const email = `${uniqueName('user')}@example.com`
    const number = phoneNumber()
    const primary = withPassword(email, { isPrimary: true })
    const user = person({ loginMethods: [withPhone(number), primary, withProvider(email)] })
    const { json } = await core.importUser(user)
    expect(json.user).toMatchObject({ id: user.externalUserId, isPrimaryUser: true })
    expect(json.user.emails).toEqual([email])
    expect(json.user.phoneNumbers).toEqual([number])
    const ids = json.user.loginMethods.map(
      (method: { recipeId: string; recipeUserId: string }) =>
        `${method.recipeId} ${method.recipeUserId === user.externalUserId}`,
    )
    expect(ids.toSorted()).toEqual(['emailpassword true', 'passwordless false', 'thirdparty false'])
  })

  it('lets one primary account hold an address', async (test) => {
    if (!hasLinking()) return test.skip('the licence has no account linking')
    const email = `${uniqueName('user')}@example.com`
    const first = withPassword(email, { isPrimary: true })
    await core.importUser(person({ loginMethods: [first] }))
    const second = withProvider(email, { isPrimary: true })
    const { json } = await core.importUser(person({ loginMethods: [second] }))
    expect(json.errors).toEqual([
      expect.stringMatching(
        /^E022: We tried to create the primary user for the userId [0-9a-f-]{36} but the account info is already associated with another primary user\.$/,
      ),
    ])
  })

  it('is refused in a class of Java where the licence has none', async (test) => {
    if (!core.withoutFeatures) return test.skip('the licence has features')
    const email = `${uniqueName('user')}@example.com`
    const user = person({ loginMethods: [withPassword(email, { isPrimary: true })] })
    const { json } = await core.withoutFeatures(() => core.importUser(user))
    expect(json.errors).toEqual([
      expect.stringMatching(/^java\.lang\.Exception: E019: Account linking feature is not enabled/),
    ])
  })
})

describe('with devices', () => {
  it('fails for one without a name', async (test) => {
    if (!core.features.has('mfa')) return test.skip('the licence has no mfa')
    const user = person({ totpDevices: [{ secretKey: 'JBSWY3DPEHPK3PXP' }] })
    const { status, json } = await core.importUser(user)
    expect(status).toBe(400)
    expect(json.errors).toEqual([expect.stringMatching(/^java\.lang\.Exception: E036: /)])
  })

  it('refuses all without the feature', async (test) => {
    if (!core.withoutFeatures) return test.skip('the licence has features')
    const user = person({ totpDevices: [] })
    expect(await core.withoutFeatures(() => core.importUser(user))).toMatchObject(
      refused('MFA must be enabled to import totp devices.'),
    )
  })
})

function hasLinking(): boolean {
  return core.features.has('account_linking') || core.features.has('mfa')
}
