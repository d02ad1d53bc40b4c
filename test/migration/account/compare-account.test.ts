import { describe, expect, it } from 'vitest'
import { compareAccount } from '../../../src/migration/account/reconcile-user.js'
import type { CoreLoginMethod } from '../../../src/migration/core/core-client.js'
import { ACCOUNT, METHODS, RECORD, withMethods } from './made-account.js'

const changed = (place: number, members: object) =>
  withMethods(METHODS.map((method, at) => (at === place ? { ...method, ...members } : method)))
const ofMetadata = (wanted: object, metadata: object) =>
  compareAccount(
    { ...RECORD, userMetadata: { ...wanted } },
    { ...ACCOUNT, metadata: { ...metadata } },
  )

describe('an account', () => {
  it('is that of its record as the core normalises it, with what was added since', () => {
    expect(compareAccount(RECORD, ACCOUNT)).toEqual([])
  })

  it('has as many differences as it has, by the paths of the record', () => {
    const bare = { ...withMethods([]), roles: new Map(), metadata: {}, totpDevices: [] }
    expect(compareAccount(RECORD, bare)).toEqual([
      'userMetadata.name',
      'userMetadata.preferences',
      'userMetadata.tags',
      'userRoles[0]',
      'userRoles[1]',
      'totpDevices[0]',
      'loginMethods[0]',
      'loginMethods[1]',
      'loginMethods[2]',
    ])
  })
})

describe('login methods differ', () => {
  it.each<[string, number, object, string]>([
    ['in tenants', 1, { tenantIds: ['public'] }, 'loginMethods[0].tenantIds'],
    ['in more tenants', 0, { tenantIds: ['public', 'shop'] }, 'loginMethods[1].tenantIds'],
    ['by one that lost its verification', 1, { verified: false }, 'loginMethods[0].isVerified'],
    ['in a join time', 1, { timeJoined: 1 }, 'loginMethods[0].timeJoinedInMSSinceEpoch'],
    ['in the e-mail beside a phone number', 2, { email: undefined }, 'loginMethods[2].email'],
    [
      'in the phone number beside an e-mail',
      2,
      { phoneNumber: '+1' },
      'loginMethods[2].phoneNumber',
    ],
  ])('%s', (_name, place, members, difference) => {
    expect(compareAccount(RECORD, changed(place, members))).toEqual([difference])
  })

  it('by another login, which is one missing and one too many', () => {
    const other = changed(1, { email: 'bob@example.com' })
    expect(compareAccount(RECORD, other)).toEqual(['loginMethods[0]', 'loginMethods'])
  })

  it('by one that only the account has', () => {
    const webauthn = { ...METHODS[1], recipeId: 'webauthn' } as (typeof METHODS)[number]
    expect(compareAccount(RECORD, withMethods([...METHODS, webauthn]))).toEqual(['loginMethods'])
  })

  it('not by a phone number without e-mail, which the core shows as verified', () => {
    const user = {
      loginMethods: [{ recipeId: 'passwordless', phoneNumber: '+4930123456' }],
    } as const
    const verified = METHODS.slice(2).map(({ email: _, ...method }) => ({
      ...method,
      verified: true,
    }))
    expect(compareAccount(user, withMethods(verified))).toEqual([])
  })

  it('not by an address that its owner has verified since', () => {
    expect(compareAccount(RECORD, changed(0, { verified: true }))).toEqual([])
    expect(compareAccount(RECORD, changed(2, { verified: true }))).toEqual([])
  })

  it('not by one login in two tenants as two methods, in any order', () => {
    const [wanted] = RECORD.loginMethods
    const [, held] = METHODS as [CoreLoginMethod, CoreLoginMethod]
    const tenants = [['a'], ['b']]
    const user = { loginMethods: tenants.map((tenantIds) => ({ ...wanted, tenantIds })) }
    const methods = tenants.map((tenantIds) => ({ ...held, tenantIds }))
    expect(compareAccount(user, withMethods(methods))).toEqual([])
    expect(compareAccount(user, withMethods(methods.toReversed()))).toEqual([])
  })
})

describe('metadata', () => {
  it.each<[string, object, object]>([
    ['more of it inside', { a: { b: 1 } }, { a: { b: 1, c: 2 } }],
    ['null, which the core drops', { a: null, b: { c: null } }, { b: {} }],
    ['null in a list, which it keeps', { a: [null, { b: null }] }, { a: [null, {}] }],
  ])('is no difference: %s', (_name, wanted, given) => {
    expect(ofMetadata(wanted, given)).toEqual([])
  })

  it.each<[string, object, object, string[]]>([
    ['another value', { a: '1' }, { a: 1 }, ['userMetadata.a']],
    ['another value inside', { a: { b: { c: 1 } } }, { a: { b: {} } }, ['userMetadata.a.b.c']],
    ['a list that has grown', { a: [1] }, { a: [1, 2] }, ['userMetadata.a']],
    ['an object for a list', { a: [] }, { a: {} }, ['userMetadata.a']],
    ['a list for an object', { a: {} }, { a: [] }, ['userMetadata.a']],
    [
      'a name with account data',
      { 'a@b.c': { d: 1 } },
      { 'a@b.c': { d: 2 } },
      ['userMetadata["…"].d'],
    ],
    [
      'an inherited name',
      { constructor: 1, toString: 1 },
      {},
      ['userMetadata.constructor', 'userMetadata.toString'],
    ],
  ])('is a difference: %s', (_name, wanted, given, differences) => {
    expect(ofMetadata(wanted, given)).toEqual(differences)
  })
})

describe('roles and TOTP devices', () => {
  it('must be there in each tenant', () => {
    const roles = new Map([
      ['public', ['editor']],
      ['shop', ['reader']],
    ])
    expect(compareAccount(RECORD, { ...ACCOUNT, roles })).toEqual(['userRoles[0]'])
  })

  it('are compared by name, period and skew', () => {
    const [, phone] = ACCOUNT.totpDevices
    const devices = (members: object) =>
      compareAccount(RECORD, { ...ACCOUNT, totpDevices: [{ ...phone, ...members } as never] })
    expect(devices({})).toEqual([])
    expect(devices({ name: 'Phone' })).toEqual(['totpDevices[0]'])
    expect(devices({ period: 60, skew: 0 })).toEqual([
      'totpDevices[0].period',
      'totpDevices[0].skew',
    ])
    const [device] = RECORD.totpDevices
    const twice = { ...RECORD, totpDevices: [device, { ...device, deviceName: 'phone' }] }
    expect(compareAccount(twice, ACCOUNT)).toEqual(['totpDevices[1]'])
  })
})
