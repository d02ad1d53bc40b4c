import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import type { ImportLoginMethod, ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { importAccount } from '../../../src/migration/endpoint/judge-request.js'
import type { MigrationOptions } from '../../../src/migration/run/migration.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import { askCore } from '../../support/core/core-client.js'
import { type StandInCore, startStandInCore } from '../../support/core/stand-in-core.js'
import { memoryJournal } from './support/memory-journal.js'
import { person, sourceOf } from './support/people.js'
import { QUICK_TIMING } from './support/quick-timing.js'
import { listOf } from './support/scene.js'

let standIn: StandInCore
let client: CoreClient
beforeAll(async () => {
  standIn = await startStandInCore()
  client = coreClient({ baseUrl: standIn.url, apiKey: standIn.apiKey })
}, 60_000)
afterAll(() => standIn.close())

let tests = 0

/** Names that no other test has, and a migration of records that tells whom it has staged. */
function begin() {
  const prefix = `t${++tests}`
  const staged: string[] = []
  const journal = memoryJournal()
  const core: CoreClient = {
    ...client,
    stageUsers(users, options) {
      staged.push(...users.map(({ externalUserId = '' }) => externalUserId))
      return client.stageUsers(users, options)
    },
  }
  const open = (records: readonly object[], options: Partial<MigrationOptions> = {}) =>
    openMigrationWith(
      {
        core,
        source: sourceOf(records),
        journal,
        onProgress: ({ type }) => (type === 'waiting' ? standIn.runJob() : undefined),
        ...options,
      },
      QUICK_TIMING,
    )
  return { name: (what: string) => `${prefix}-${what}`, staged, open, journal }
}

/** A person with these login methods instead. */
const withMethods = (
  externalUserId: string | undefined,
  ...loginMethods: readonly Partial<ImportLoginMethod>[]
): ImportUser => ({
  ...(externalUserId !== undefined && { externalUserId }),
  loginMethods: loginMethods as readonly ImportLoginMethod[],
})

const email = (address: string): Partial<ImportLoginMethod> => ({
  recipeId: 'passwordless',
  email: `${address}@example.com`,
})
const phone = (phoneNumber: string): Partial<ImportLoginMethod> => ({
  recipeId: 'passwordless',
  phoneNumber,
})
const google = (userId: string, address: string): Partial<ImportLoginMethod> => ({
  recipeId: 'thirdparty',
  thirdPartyId: 'google',
  thirdPartyUserId: userId,
  email: `${address}@example.com`,
})

async function accountOf(user: ImportUser): Promise<string> {
  const imported = await client.importUser(user)
  if (imported.outcome !== 'created') throw new Error(imported.errors.join())
  const { externalUserId } = user
  const id = externalUserId === undefined ? undefined : await client.coreIdOf(externalUserId)
  return id ?? imported.user.id
}

describe('a login that another account has', () => {
  it('is not staged, and is reported with that account, whatever kind of login it is', async () => {
    const { name, open, staged, journal } = begin()
    const number = `+4144668${1000 + tests}`
    const holders = [
      await accountOf(withMethods(name('other-1'), email(name('email')))),
      await accountOf(withMethods(undefined, google(name('g'), name('other-2')))),
      await accountOf(withMethods(name('other-3'), phone(number))),
    ]
    const records = [
      person(name('0')),
      withMethods(name('1'), email(name('free')), {
        ...email(name('email').toUpperCase()),
        isPrimary: true,
      }),
      withMethods(name('2'), google(name('g'), name('2'))),
      withMethods(name('3'), phone(number)),
      person(name('4')),
    ]
    const migration = await open(records)
    expect(await migration.run()).toMatchObject({
      state: 'to_correct',
      counts: { invalid: 3, reconciled: 2 },
      findings: [{ code: 'login_taken', severity: 'notice', line: 2, records: 3 }],
    })
    expect(staged).toEqual([name('0'), name('4')])
    expect((await listOf(migration.identities())).slice(1, 4)).toEqual(
      holders.map((heldBy, index) => ({
        externalUserId: name(String(index + 1)),
        line: index + 2,
        state: 'invalid',
        code: 'login_taken',
        heldBy,
      })),
    )
    expect(journal.lines.join()).not.toMatch(/@example\.com|\+41/i)
  })

  it('is no conflict when it is the account of the record itself', async () => {
    const { name, open, staged } = begin()
    await accountOf(person(name('0')) as ImportUser)
    expect(await (await open([person(name('0')), person(name('1'))])).run()).toMatchObject({
      state: 'complete',
      findings: [],
    })
    expect(staged).toEqual([name('1')])
  })

  it('is looked up again by a preflight that is repeated, and after the start by its code', async () => {
    const { name, open, staged } = begin()
    const taken = [person(name('1')), person(name('2'))] as ImportUser[]
    const [first, second] = await Promise.all(
      taken.map((user, index) => accountOf({ ...user, externalUserId: name(`other-${index}`) })),
    )
    const migration = await open([person(name('0')), ...taken])
    expect(await migration.check()).toMatchObject({ counts: { invalid: 2 } })
    await removeAccount(first)
    expect(await migration.run()).toMatchObject({ state: 'to_correct', counts: { invalid: 1 } })
    expect((await listOf(migration.identities()))[1]).toMatchObject({ state: 'reconciled' })
    await expect(migration.correct({ again: ['login_taken'] })).rejects.toMatchObject({
      code: 'bad_corrections',
      message: expect.stringContaining('still have a login of each'),
    })
    await removeAccount(second)
    const third = await accountOf({ ...(taken[1] as ImportUser), externalUserId: name('third') })
    await expect(migration.correct({ again: ['login_taken'] })).rejects.toThrow()
    expect((await listOf(migration.identities()))[2]).toMatchObject({ heldBy: third })
    await removeAccount(third)
    expect(await migration.correct({ again: ['login_taken'] })).toMatchObject({ state: 'complete' })
    expect(staged).toEqual([name('0'), name('1'), name('2')])
  })

  it('is corrected with another login, or left out', async () => {
    const { name, open } = begin()
    for (const user of ['1', '2']) {
      await accountOf({
        ...person(name(user)),
        externalUserId: name(`other-${user}`),
      } as ImportUser)
    }
    const migration = await open(['0', '1', '2'].map((user) => person(name(user))))
    await migration.run()
    const replaced = (login: string) => ({
      replaces: name('1'),
      user: { ...person(name(login)), externalUserId: name('1') },
    })
    const leftOut = { leaveOut: name('2'), reason: 'known already' }
    const taken = sourceOf([leftOut, replaced('2')], 'fix')
    await expect(migration.correct(taken)).rejects.toMatchObject({
      code: 'bad_corrections',
      message: expect.stringMatching(
        /^line 2: login_taken in loginMethods: The account [\w-]{36} has a login/,
      ),
    })
    const fix = sourceOf([leftOut, replaced('new')], 'fix')
    expect(await migration.correct(fix)).toMatchObject({
      state: 'complete',
      counts: { reconciled: 2, left_out: 1 },
    })
  })
})

describe('a login of two records', () => {
  it('is staged once, whatever warnings are accepted, and the later record names the first', async () => {
    const { name, open, staged } = begin()
    const records = [
      person(name('0')),
      { ...person(name('0')), externalUserId: name('1') },
      person(name('2')),
    ]
    const migration = await open(records, { acceptWarnings: ['login_twice'] })
    expect(await migration.run()).toMatchObject({
      state: 'to_correct',
      counts: { invalid: 1, reconciled: 2 },
      findings: [{ code: 'login_twice', severity: 'notice', line: 2, records: 1 }],
    })
    expect(staged).toEqual([name('0'), name('2')])
    expect((await listOf(migration.identities()))[1]).toEqual({
      externalUserId: name('1'),
      line: 2,
      state: 'invalid',
      code: 'login_twice',
      text: 'Line 1 of the source has the same login.',
    })
  })

  it('belongs to the first of them that is staged', async () => {
    const { name, open, staged } = begin()
    await accountOf(withMethods(name('other'), email(name('taken'))))
    const migration = await open(
      [
        withMethods(name('invalid'), { ...email(name('a')), isVerified: 1 as unknown as boolean }),
        withMethods(name('0'), email(name('a'))),
        withMethods(name('held'), email(name('taken')), {
          ...phone('+41446681801'),
          isPrimary: true,
        }),
        withMethods(name('1'), phone('+41446681801')),
        withMethods(name('2'), phone('+41446681801')),
      ],
      { acceptWarnings: ['no_primary'] },
    )
    expect(await migration.run()).toMatchObject({ counts: { invalid: 3, reconciled: 2 } })
    expect(staged).toEqual([name('0'), name('1')])
    expect(
      (await listOf(migration.identities())).map(({ code, text }) => code && [code, text]),
    ).toEqual([
      undefined,
      undefined,
      ['login_taken', undefined],
      undefined,
      ['login_twice', 'Line 4 of the source has the same login.'],
    ])
  })

  it('belongs to the later record when the hook makes its account meanwhile', async () => {
    const { name, open, staged } = begin()
    const twin = { ...person(name('0')), externalUserId: name('1') } as ImportUser
    let account: string | undefined
    const migration = await open([person(name('0')), twin, person(name('2'))], {
      async onProgress({ type }) {
        if (type !== 'waiting') return
        account ??= await accountOf(twin)
        await standIn.runJob()
      },
    })
    expect(await migration.run()).toMatchObject({
      state: 'to_correct',
      counts: { failed: 1, reconciled: 2 },
    })
    expect(staged).toEqual([name('0'), name('2')])
    const [first, later] = await listOf(migration.identities())
    expect(first).toMatchObject({ state: 'failed', code: 'E003', heldBy: account })
    const { externalUserId } = twin
    const reconciled = { externalUserId, line: 2, state: 'reconciled', coreUserId: account }
    expect(later).toEqual(reconciled)
    const leftOut = [{ leaveOut: name('0'), reason: 'the same person' }]
    expect(await migration.correct(sourceOf(leftOut, 'fix'))).toMatchObject({ state: 'complete' })
  })

  it('is reported by a preflight that fails, and is forgotten once the source is corrected', async () => {
    const { name, open, journal } = begin()
    const twin = { ...person(name('0')), externalUserId: name('1') }
    const userRoles = [{ role: 'nobody-made-it', tenantIds: ['public'] }]
    const failed = await open([person(name('0'), { userRoles }), twin])
    expect(await failed.run()).toMatchObject({
      state: 'preflight_failed',
      counts: { invalid: 1, pending: 1 },
      findings: [{ code: 'role_missing' }, { code: 'login_twice', line: 2 }],
    })
    const fixed = await open([person(name('0')), person(name('1'))], { journal })
    expect(await fixed.run()).toMatchObject({ state: 'complete' })
    expect((await listOf(fixed.identities()))[1]).not.toHaveProperty('code')
  })

  it('is free by its code once the first has none any more, for one of the others', async () => {
    const { name, open, staged } = begin()
    const twin = (user: string) => ({ ...person(name('0')), externalUserId: name(user) })
    let isTaken = false
    const migration = await open([person(name('0')), twin('1'), twin('2')], {
      async onProgress({ type }) {
        if (type !== 'waiting') return
        // The hook gives the login to somebody else between the preflight and the job.
        if (!isTaken) await accountOf(twin('hook') as ImportUser)
        isTaken = true
        await standIn.runJob()
      },
    })
    expect(await migration.run()).toMatchObject({ counts: { invalid: 2, failed: 1 } })
    await expect(migration.correct({ again: ['login_twice'] })).rejects.toThrow(
      'still have a login of each',
    )
    await removeAccount(await client.coreIdOf(name('hook')))
    const leftOut = [{ leaveOut: name('0'), reason: 'the same person' }]
    await migration.correct(sourceOf(leftOut, 'fix'))
    expect(await migration.correct({ again: ['login_taken', 'login_twice'] })).toMatchObject({
      state: 'to_correct',
      counts: { left_out: 1, reconciled: 1, invalid: 1 },
    })
    expect(staged).toEqual([name('0'), name('1')])
    expect((await listOf(migration.identities()))[2]).toMatchObject({
      code: 'login_twice',
      text: 'Line 2 of the source has the same login.',
    })
  })

  it('may be of different recipes between primary users', async () => {
    const { name, open, staged } = begin()
    const records = [
      withMethods(name('0'), { ...email(name('a')), isPrimary: true }),
      withMethods(name('1'), { ...google(name('g'), name('a')), isPrimary: true }),
      // No primary user, so the address is no login.
      withMethods(name('2'), google(name('g2'), name('a'))),
    ]
    const migration = await open(records)
    await migration.check()
    const codes = (await listOf(migration.identities())).map(({ code }) => code)
    expect(codes).toEqual([undefined, 'login_twice', undefined])
    expect(staged).toEqual([])
  })

  it('may be of a primary account by another recipe', async () => {
    const { name, open } = begin()
    const login = { ...email(name('a')), isPrimary: true }
    const holder = await accountOf(withMethods(name('other'), login))
    const record = withMethods(name('0'), { ...google(name('g'), name('a')), isPrimary: true })
    const migration = await open([record])
    await migration.check()
    expect(await listOf(migration.identities())).toMatchObject([
      { state: 'invalid', code: 'login_taken', heldBy: holder },
    ])
  })
})

/** With a trunk prefix, which the core removes. */
const TRUNK_NUMBERS = [
  '+410446681900',
  '+41 (0) 44 668 19 01',
  '+4901511234567',
  '+784957654321',
  '+5215512345678',
  '+116502530000',
]

it('a number with a trunk prefix is reconciled, and known to the endpoint again', async () => {
  const { open } = begin()
  const users = TRUNK_NUMBERS.map((number) => withMethods(`of ${number}`, phone(number)))
  expect(await (await open(users)).run()).toMatchObject({
    state: 'complete',
    counts: { reconciled: users.length },
  })
  for (const user of users) {
    expect(await importAccount(client, user)).toMatchObject({ reason: 'existing' })
  }
})

const removeAccount = (userId: string | undefined) =>
  askCore(standIn, '/user/remove', { userId, removeAllLinkedAccounts: true })
