import { describe, expect, it } from 'vitest'
import { GOOD_USER } from '../record-validation/users.js'
import { person, sourceOf } from './support/people.js'
import { refusal, scene } from './support/scene.js'

describe('the advice on a core that cannot be asked', () => {
  it('names what to check, also after the step', async () => {
    const roles = async () => {
      throw refusal('forbidden')
    }
    const { open, journal } = scene({ roles })
    const report = await (await open()).check()
    expect(report).toMatchObject({ state: 'core_fault' })
    expect(report.advice).toEqual([
      'The core: the core says forbidden',
      expect.stringMatching(/^Check which addresses the core.*, then run again\.$/),
    ])
    expect((await (await open({ journal })).status()).advice).toEqual(report.advice)
  })
})

const withMethod = (members: object) => ({
  ...person('a'),
  loginMethods: [{ ...person('a').loginMethods[0], ...members }],
})

describe('the findings of records', () => {
  const invalid = (name: string) => ({
    externalUserId: name,
    loginMethods: [{ recipeId: 'email' }],
    // A warning, were the record not invalid anyway.
    color: 'red',
  })
  const twice = (name: string) => ({
    externalUserId: name,
    loginMethods: [{ recipeId: 'email' }, { recipeId: 'sms' }],
    userRoles: [{ tenantIds: ['public'] }],
  })

  it('count each invalid record once, and each record once in a warning', async () => {
    const odd = { ...person('odd').loginMethods[0], color: 'red' }
    const records = [
      person('user-0'),
      { ...person('odd'), loginMethods: [odd, { ...odd, email: 'odd2@example.com' }] },
      ...['a', 'b'].map(invalid),
      ...['c', 'd', 'e'].map(twice),
      { ...person('user-0'), externalUserId: 'twin' },
    ]
    const { open } = scene({}, { source: sourceOf(records), acceptWarnings: ['no_primary'] })
    const { findings, counts } = await (await open()).check()
    const held = findings.filter(({ severity }) => severity === 'notice')
    expect(held.map(({ code, records: size }) => [code, size])).toEqual([
      ['record_invalid', 2],
      ['record_invalid', 3],
      ['login_twice', 1],
    ])
    expect(counts.invalid).toBe(6)
    expect(held[1]?.message).toMatch(
      /^\w+ in userRoles\[0\].+; unknown_recipe in loginMethods\[0\]/,
    )
    expect(findings).toContainEqual(
      expect.objectContaining({ code: 'warning_not_accepted', line: 2, records: 1 }),
    )
  })

  it.each<[string, object, ...string[]]>([
    [
      'everything',
      GOOD_USER,
      ...['tenant known-tenant', 'role known-role', 'feature account_linking'],
      ...['feature multi_tenancy', 'feature mfa'],
    ],
    ['a primary method', withMethod({ isPrimary: true }), 'feature account_linking'],
    ['an empty list of devices', { ...person('a'), totpDevices: [] }, 'feature mfa'],
    // Only the exact name is free.
    ['another spelling', withMethod({ tenantIds: ['Public'] }), 'feature multi_tenancy'],
    ['nothing special', person('a')],
  ])('name what the core lacks for a record with %s', async (_, record, ...lacked) => {
    const { open } = scene({}, { source: sourceOf([record]) })
    const { findings } = await (await open()).check()
    const faults = findings.filter(({ severity }) => severity === 'fault')
    expect(faults.map(({ message }) => message)).toEqual(
      lacked.map((what) => `The core lacks the ${what}.`),
    )
  })
})
