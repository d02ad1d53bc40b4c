import { describe, expect, it } from 'vitest'
import { importOne } from '../../../src/migration/account/import-one.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import {
  ok,
  type Reply,
  replies,
  type ScriptedCore,
  startScriptedCore,
} from '../core/scripted-core.js'

const USER: ImportUser = {
  externalUserId: 'legacy-1',
  loginMethods: [{ recipeId: 'passwordless', email: 'a@example.com' }],
}
const ACCOUNT = {
  id: 'legacy-1',
  ...{ isPrimaryUser: false, tenantIds: ['public'], timeJoined: 1 },
  ...{ emails: ['a@example.com'], phoneNumbers: [], thirdParty: [], loginMethods: [] },
}
const CREATED = { outcome: 'created', userId: 'legacy-1', coreUserId: 'core-1' }
const EXISTING = { ...CREATED, outcome: 'existing' }

interface Script {
  /** What is answered to an import, which is done before where `isDone`. */
  readonly answer?: Reply
  readonly isDone?: boolean
  readonly isThere?: boolean
  readonly mapping?: Reply
  readonly account?: Reply
  /** Answers to look-ups of a login. */
  readonly holders?: Reply
}

const NO_MAPPING = replies(200, { status: 'UNKNOWN_MAPPING_ERROR' })
const IMPORTED = ok({ user: ACCOUNT })

/** A core that keeps one account. */
async function coreWith({ answer = IMPORTED, isDone = true, ...script }: Script = {}) {
  let isThere = script.isThere ?? false
  return startScriptedCore(({ url }) => {
    if (url.startsWith('/bulk-import/import')) {
      isThere ||= isDone
      return answer
    }
    if (url.startsWith('/recipe/userid/map')) {
      const mapping = ok({ superTokensUserId: 'core-1', externalUserId: 'legacy-1' })
      return script.mapping ?? (isThere ? mapping : NO_MAPPING)
    }
    if (url.startsWith('/users/by-accountinfo')) return script.holders ?? ok({ users: [] })
    return script.account ?? IMPORTED
  })
}

const rejects = (...errors: string[]): Reply => replies(400, { errors })
const TAKEN = 'E003: A user with email a@example.com already exists in emailpassword loginMethod.'
const imports = (core: ScriptedCore): number =>
  core.requests.filter(({ url }) => url === '/bulk-import/import').length

describe('importOne creates', () => {
  it('an account, and tells both of its ids', async () => {
    const core = await coreWith()
    expect(await importOne(core.client(), USER)).toEqual(CREATED)
    expect(core.requests.map(({ method }) => method)).toEqual(['POST', 'GET'])
  })

  it('an account whose id the core has trimmed', async () => {
    const core = await coreWith()
    const user = { ...USER, externalUserId: ' legacy-1\n' }
    expect(await importOne(core.client(), user)).toEqual(CREATED)
  })

  it('no second account when the first is now one with another', async () => {
    // Linked since by a sign-in: the core shows the other's id.
    const method = {
      ...{ recipeId: 'passwordless', recipeUserId: 'legacy-1', tenantIds: ['public'] },
      ...{ verified: true, timeJoined: 1, email: 'a@example.com' },
    }
    const account = ok({ user: { ...ACCOUNT, id: 'legacy-2', loginMethods: [method] } })
    const core = await coreWith({ isThere: true, answer: rejects(TAKEN), account })
    const existing = { ...EXISTING, userId: 'legacy-2' }
    expect(await importOne(core.client(), USER)).toEqual(existing)
  })
})

/** All that is not a 200. */
const OTHER_ANSWERS: readonly [string, Reply][] = [
  ['a conflict', rejects(TAKEN)],
  ['a wrong key', replies(401, 'Invalid API key')],
  ['nothing', (response) => response.destroy()],
]

describe.concurrent('importOne, answered with', () => {
  it.each(OTHER_ANSWERS)('%s, finds the account that is there', async (_, answer) => {
    const core = await coreWith({ answer })
    expect(await importOne(core.client(), USER)).toEqual(EXISTING)
    expect(imports(core)).toBe(1)
  })

  it('nothing, and no account, cannot tell', async () => {
    const core = await coreWith({ answer: (response) => response.destroy(), isDone: false })
    const failed = { name: 'CoreError', code: 'unreachable', outcome: 'unknown' }
    await expect(importOne(core.client(), USER)).rejects.toMatchObject(failed)
    expect(imports(core)).toBe(1)
  })
})

/** As core 10.1.8 reports a value that is taken: it has no code for it. */
const duplicateOf = (constraint: string): string =>
  `io.supertokens.pluginInterface.exceptions.StorageQueryException: java.sql.BatchUpdateException: Batch entry 0 INSERT INTO thirdparty_user_to_tenant(app_id) VALUES (('public')) was aborted: ERROR: duplicate key value violates unique constraint "${constraint}"\n  Detail: Key (app_id)=(public) already exists.  Call getNextException to see other errors in the batch.`

const CONFLICTS: readonly [string[], string[]][] = [
  [[TAKEN], ['E003']],
  [['E022: We tried', 'E022: We tried'], ['E022']],
  [['E034: z'], ['E034']],
  [['io.supertokens.X$Y: java.lang.Exception: E022: We tried'], ['E022']],
  [[duplicateOf('emailpassword_user_to_tenant_email_key')], ['E003']],
  [[duplicateOf('thirdparty_user_to_tenant_third_party_user_id_key')], ['E005']],
  [[duplicateOf('passwordless_user_to_tenant_phone_number_key')], ['E007']],
  [[duplicateOf('passwordless_user_to_tenant_email_key')], ['E006']],
  [[duplicateOf('prefix_userid_mapping_external_user_id_key')], ['E031']],
  [[duplicateOf('user_roles_pkey')], ['unknown_conflict']],
  [
    [TAKEN, duplicateOf('user_roles_pkey')],
    ['E003', 'unknown_conflict'],
  ],
]

/** They pass, or blame nobody. */
const NO_BLAME: readonly string[][] = [
  ['java.lang.Exception: E019: Account linking feature is not enabled for this app.'],
  [`E036: ${duplicateOf('totp_user_devices_pkey')}`],
  ['E999: of a newer core'],
  [TAKEN, 'E036: a fault'],
  [TAKEN, 'At least one loginMethod is required.'],
  ['a b: E003: x'],
]

describe.concurrent('importOne, refused without an account under the id,', () => {
  it.each(CONFLICTS)('is a conflict after %j', async (texts, codes) => {
    const core = await coreWith({ isDone: false, answer: rejects(...texts) })
    expect(await importOne(core.client(), USER)).toEqual({ outcome: 'conflict', codes })
  })

  it.each(NO_BLAME)('cannot tell after %s', async (...texts) => {
    const core = await coreWith({ isDone: false, answer: rejects(...texts) })
    const failed = { name: 'CoreError', code: 'bad_request', status: 400, outcome: 'unknown' }
    await expect(importOne(core.client(), USER)).rejects.toMatchObject(failed)
  })

  it('is invalid after texts of the core’s validation', async () => {
    const texts = ['Role admin does not exist.', 'Invalid tenantId: acme for a user role.']
    const core = await coreWith({ isDone: false, answer: rejects(...texts) })
    expect(await importOne(core.client(), USER)).toEqual({
      outcome: 'invalid',
      errors: texts.map((message) => ({ field: '', code: 'refused_by_core', message })),
    })
  })
})

describe.concurrent('importOne, refused with a text that tells no cause,', () => {
  const pair = { thirdPartyId: 'google', thirdPartyUserId: 'google-1' }
  const user: ImportUser = {
    externalUserId: 'legacy-1',
    loginMethods: [{ recipeId: 'thirdparty', email: 'a@example.com', isPrimary: true, ...pair }],
  }
  const holder = (userId: string) => {
    const method = {
      ...{ recipeId: 'thirdparty', recipeUserId: 'other', tenantIds: ['public'], verified: true },
      ...{ timeJoined: 1, email: 'a@example.com', thirdParty: { id: 'google', userId } },
    }
    return ok({ users: [{ ...ACCOUNT, id: 'other', isPrimaryUser: true, loginMethods: [method] }] })
  }
  const translated = { isDone: false, answer: rejects('translated') }
  const failed = { code: 'bad_request', status: 400, outcome: 'unknown' }

  it.each([
    ['the pair', 'google-1', 'E005'],
    ['as a primary user the e-mail address', 'google-2', 'E022'],
  ])('is a conflict where another account has %s', async (_, providerUserId, code) => {
    const core = await coreWith({ ...translated, holders: holder(providerUserId) })
    const conflict = { outcome: 'conflict', codes: [code] }
    expect(await importOne(core.client(), user)).toEqual(conflict)
  })

  it.each<[string, Reply]>([
    ['nobody has a login of the user', ok({ users: [] })],
    ['who has it cannot be asked', replies(400, 'x')],
  ])('cannot tell where %s', async (_, holders) => {
    const core = await coreWith({ ...translated, holders })
    const asked = importOne(core.client(), user)
    await expect(asked).rejects.toMatchObject({ ...failed, name: 'CoreError' })
  })

  it('cannot tell where its own account has come to be meanwhile', async () => {
    let looks = 0
    const mapping = ok({ superTokensUserId: 'core-1', externalUserId: 'legacy-1' })
    const core = await startScriptedCore(({ url }) => {
      if (url.startsWith('/bulk-import/import')) return rejects('translated')
      if (url.startsWith('/users/by-accountinfo')) return holder('google-1')
      if (url.includes('userId=other')) return NO_MAPPING
      looks += 1
      return looks === 1 ? NO_MAPPING : mapping
    })
    await expect(importOne(core.client(), user)).rejects.toMatchObject(failed)
  })
})

describe.concurrent('importOne cannot tell when the look-up', () => {
  it.each<[string, Script, string]>([
    ['fails', { mapping: replies(500, 'x') }, 'server_error'],
    ['finds nothing of an account that was made', { mapping: NO_MAPPING }, 'malformed_reply'],
    [
      'finds an id without an account',
      { answer: rejects(TAKEN), account: replies(200, { status: 'UNKNOWN_USER_ID_ERROR' }) },
      'malformed_reply',
    ],
    [
      'finds an account with another id',
      { answer: rejects(TAKEN), account: ok({ user: { ...ACCOUNT, id: 'core-1' } }) },
      'malformed_reply',
    ],
  ])('%s', async (_, script, code) => {
    const core = await coreWith(script)
    const failed = { name: 'CoreError', code, outcome: 'unknown' }
    await expect(importOne(core.client(), USER)).rejects.toMatchObject(failed)
  })
})

describe.concurrent('importOne sends nothing', () => {
  it.each<[string, object, object]>([
    ['an invalid user', { externalUserId: 'a', loginMethods: [] }, { field: 'loginMethods' }],
    ['a user without an external id', { loginMethods: USER.loginMethods }, { code: 'required' }],
    ['a BigInt', { ...USER, userMetadata: { balance: 10n } }, { code: 'wrong_type' }],
  ])('of %s', async (_, user, finding) => {
    const core = await coreWith()
    const result = await importOne(core.client(), user as ImportUser)
    expect(result).toMatchObject({ outcome: 'invalid', errors: [finding] })
    expect(core.requests).toEqual([])
  })

  it('when its signal has aborted', async () => {
    const core = await coreWith()
    const signal = AbortSignal.abort(new Error('before'))
    await expect(importOne(core.client(), USER, { signal })).rejects.toThrow('before')
    expect(core.requests).toEqual([])
  })
})
