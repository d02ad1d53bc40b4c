import {
  type LiveDenylist,
  remoteKeySet,
  type ServiceAuthPolicy,
  serviceAuth,
} from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import {
  parsePolicies,
  parsePolicy,
  refusesStaticKey,
} from '../../../src/verification/policy/policy.js'

const COMPLETE = {
  issuer: 'https://api.example.com',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
}

const LIVE = {
  lists: () => undefined,
  ready: async () => {},
  health: () => ({ state: 'cold', entries: 0, version: 0 }),
  close() {},
} satisfies LiveDenylist

const OAUTH2 = {
  tokens: 'oauth2',
  issuer: 'https://tenant.example.com',
  audience: 'orders',
  callers: ['billing'],
  jwksUri: 'https://tenant.example.com/jwks.json',
  permissionsClaim: 'scope',
}

/** The message of the TypeError that a policy is refused with. */
function refusalOf(policy: unknown): string {
  try {
    serviceAuth(policy as ServiceAuthPolicy).close()
  } catch (error) {
    if (error instanceof TypeError) return error.message
    throw error
  }
  return 'accepted'
}

const withField = (field: string, value: unknown): string =>
  refusalOf({ ...COMPLETE, [field]: value })

describe('a policy without an optional field', () => {
  it('has the default of the contract', () => {
    const policy = parsePolicy(COMPLETE)
    expect(policy).toMatchObject({
      permissions: [],
      tokens: { kind: 'service', staticKeys: 'refuse' },
      clockToleranceSeconds: 5,
      maxLifetimeSeconds: 3600,
      tokenCacheMax: 10_000,
      onDecision: undefined,
      keySet: {
        kind: 'own',
        jwksUri: 'https://api.example.com/auth/jwt/jwks.json',
        allowInsecureHttp: false,
      },
    })
    expect(policy.denied.issuedBefore).toBeUndefined()
    for (const list of ['keys', 'callers', 'tokenIds'] as const)
      expect(policy.denied[list].size).toBe(0)
    expect(Math.abs(policy.clock() - Date.now())).toBeLessThan(1000)
    expect(Object.isFrozen(policy)).toBe(true)
  })
})

describe('a policy field', () => {
  const nonStrings = [undefined, null, '', 1, true, [], ['x'], {}, /x/, Symbol('x'), () => 'x']
  const nonLists = ['x', 1, true, null, {}, new Set(['x']), [1], [''], [null], ['x', undefined]]
  const outside = (least: number, most: number) => [least - 0.001, most + 1, Number.NaN, '1', null]
  const wrong: Record<string, readonly unknown[]> = {
    issuer: nonStrings,
    audience: nonStrings,
    source: nonStrings,
    tokenType: nonStrings,
    callers: [
      ...nonStrings.filter((value) => !Array.isArray(value)),
      ...[[], [''], [['x']], new Array(3), {}, { '': ['x'] }, { a: [''] }, { a: new Array(1) }],
      ...[Object.create({ inherited: ['x'] }), new Map([['x', ['y']]])],
    ],
    permissions: [...nonLists, []],
    apiBasePath: [...nonStrings.slice(1), 'auth', './auth', 'https://x.test', '/auth?x', '/auth#x'],
    jwksUri: [...nonStrings.slice(1), 'x', '/jwks.json', 'ftp://x.test/'],
    keySet: [null, {}, 'https://x.test', { ready() {}, health() {}, close() {} }, [], true],
    staticKeys: [null, '', true, false, 'Accept', 'allow', ['accept']],
    clockToleranceSeconds: outside(0, 60),
    maxLifetimeSeconds: outside(1, 604_800),
    denylist: [null, [], 'x', true, ['x'], new Set()],
    tokenCache: [null, true, 0, {}, [], { max: 0 }, { max: 1.5 }, { max: '1' }, { max: 1_000_001 }],
    allowInsecureHttp: [null, 0, 1, 'true', {}],
    onDecision: [null, true, 'log', {}, []],
    clock: [null, 1, 'now', new Date(), {}],
  }

  it.each(Object.entries(wrong))('%s is named when it is wrong', (field, values) => {
    const accepted = values.filter((value) => !withField(field, value).includes(field))
    expect(accepted).toEqual([])
  })

  const live = 'a live denylist with lists, ready, health, close, and optionally catchUp'
  const denylist = `must be an object of keys, callers, tokenIds and issuedBefore, or ${live}`

  it.each<[string, unknown, string]>([
    ['permissions', 'x', 'permissions must be a list of strings'],
    ['permissions', [], 'permissions must not be empty'],
    ['keySet', {}, 'keySet must be a key set made by remoteKeySet'],
    ['tokenCache', true, 'tokenCache must be false or { max: an integer from 1 to 1000000 }'],
    ['tokenCache', { max: 0 }, 'tokenCache.max must be an integer from 1 to 1000000'],
    ['staticKeys', 'allow', "staticKeys must be 'refuse' or 'accept'"],
    ['permissionsClaim', 'scope', "permissionsClaim is only for tokens: 'oauth2'"],
    ['tokens', 'jwt', "tokens must be 'service' or 'oauth2'"],
    ['callers', [], 'callers must name at least one caller'],
    ['callers', ['a', ''], 'callers[1] must be a non-empty string'],
    ['callers', { a: [1] }, 'callers.a must be a list of non-empty strings'],
    ['denylist', 'x', `denylist ${denylist}, or a list of both`],
    ['denylist', ['x'], `denylist[0] ${denylist}`],
    ['denylist', { keys: 'x' }, 'denylist.keys must be a list of strings'],
  ])('%s is refused as %j with what it must be', (field, value, message) => {
    expect(withField(field, value)).toBe(`serviceAuth policy: ${message}`)
  })

  it.each<[string, readonly unknown[]]>([
    ['clockToleranceSeconds', [0, 0.5, 60]],
    ['maxLifetimeSeconds', [1, 604_800]],
    ['tokenCache', [false, { max: 1 }, { max: 100_000 }]],
    ['staticKeys', ['refuse', 'accept']],
    ['permissions', [['a'], ['a', 'a']]],
    [
      'denylist',
      [
        { keys: [] },
        { keys: ['a'], callers: ['b'], tokenIds: ['c'], issuedBefore: 0 },
        LIVE,
        [{ keys: ['a'] }, LIVE, LIVE, { callers: ['b'] }],
        Object.create(LIVE),
        { ...LIVE, keys: 'its own affair' },
      ],
    ],
    ['callers', [['a'], ['a', 'a'], { a: [] }, { a: ['b'] }]],
    ['apiBasePath', ['/', '/auth', '/a/b']],
    ['allowInsecureHttp', [true, false]],
  ])('%s may be anything within its range', (field, values) => {
    for (const value of values) expect(withField(field, value)).toBe('accepted')
  })

  it.each<[unknown, string]>([
    [{ callers: [''] }, 'denylist.callers[0]'],
    [{ issuedBefore: '2026' }, 'denylist.issuedBefore'],
    [{ issuedBefore: Number.NaN }, 'denylist.issuedBefore'],
    [[], 'denylist must hold at least one denylist'],
    [{ ...LIVE, close: true }, 'denylist must be a live denylist'],
    [[{}, { keys: 'x' }], 'denylist[1].keys must be a list of strings'],
    [[LIVE, { tokenIds: ['a', 1] }], 'denylist[1].tokenIds[1] must be a non-empty string'],
    [[LIVE, { issuers: [] }], 'denylist[1].issuers is not an option'],
    [[LIVE, { issuedBefore: Date.now() }], 'denylist[1].issuedBefore must be a number of seconds'],
    [[LIVE, [LIVE]], 'denylist[1] must be an object of keys'],
    [new Array(2), 'denylist[0] must be an object of keys'],
    [[LIVE, { ...LIVE, ready: undefined }], 'denylist[1] must be a live denylist'],
    [
      [{ keys: [1] }, { ready() {} }],
      'denylist[0].keys[0] must be a non-empty string; denylist[1]',
    ],
  ])('denylist %j is refused under the name %s', (denylist, path) => {
    expect(withField('denylist', denylist)).toContain(path)
  })
})

describe('a sender constraint', () => {
  const fault = (senderConstraint: unknown): string =>
    withField('senderConstraint', senderConstraint)

  it('is what the contract says', () => {
    const mtls = (): undefined => undefined
    for (const good of [{}, { mtls: true }, { mtls, required: true }, { mtls, required: false }]) {
      expect(fault(good)).toBe('accepted')
    }
    const urls = [
      'https://a.test',
      'http://[::1]:8080/v1',
      'HTTPS://A.test/%7Eb',
      'http://10.0.0.1',
    ]
    const hosts = ['localhost', 'my_orders:8080', 'a.test.', 'xn--bcher-kva.test', 'a1.test:65535']
    for (const host of [...hosts, '2a', '[2001:db8::1]']) {
      expect(fault({ dpop: { baseUrls: [`http://${host}`] } })).toBe('accepted')
    }
    for (const baseUrls of [urls, Array(16).fill('https://a.test')]) {
      expect(fault({ dpop: { baseUrls }, required: true })).toBe('accepted')
    }
  })

  const words = (text: string): string[] => text.split(' ')
  const SPELLINGS =
    'a.test / ftp://a.test https:// https:///x https://a.test/ https://a.test/v1/ https://a.test?x https://a.test#x https://u@a.test https://u:p@a.test https://a.test\\x https://a.test:x https://a.test/% https://\u00e9.test //a.test'
  // Some of these are hosts by the syntax of RFC 3986.
  const UNREACHABLE = '* *.test a,b 1 127.1 256.0.0.1 [::x] [:::] [1.2.3.4] a.test:080 a.test:65536'
  // `fetch` sends other spellings of these.
  const RESPELT = '[0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] a.test/{x} a.test/"'
  it.each([
    ...['', ' https://a.test', 'https://a.test\n', 'https://a.test/ x', undefined, null, 5, {}],
    ...words(SPELLINGS),
    ...[...words(UNREACHABLE), ...words(RESPELT)].map((host) => `https://${host}`),
  ])('the base URL %j is refused', (url) => {
    expect(fault({ dpop: { baseUrls: ['https://a.test', url] } })).toContain(
      'senderConstraint.dpop.baseUrls[1] must be an absolute http(s) URL of a host, without user name, query',
    )
  })

  it.each([
    [null, 'senderConstraint must be an object'],
    [{ mtls: false }, 'senderConstraint.mtls must be true or a function'],
    [{ required: 1 }, 'senderConstraint.required must be true or false'],
    [{ required: true }, 'senderConstraint.required needs mtls or dpop'],
    [{ dpop: true }, 'senderConstraint.dpop must be an object'],
    [{ dpop: {} }, 'senderConstraint.dpop.baseUrls must be a list of 1 to 16 URLs'],
    [{ dpop: { baseUrls: [] } }, 'dpop.baseUrls must be a list of 1 to 16 URLs'],
    [{ dpop: { baseUrls: Array(17).fill('https://a.test') } }, 'must be a list of 1 to 16 URLs'],
    [{ dpop: { baseUrl: 'https://a.test' } }, 'senderConstraint.dpop.baseUrl is not an option'],
    [{ mtl: true }, 'senderConstraint.mtl is not an option'],
  ])('%j is refused', (value, message) => {
    expect(fault(value)).toContain(message)
  })
})

describe('a policy', () => {
  it('is refused with every faulty path in one message', () => {
    const message = refusalOf({
      issuer: '',
      audience: ['orders'],
      source: undefined,
      callers: { billing: 'all', reporting: [1] },
      permissions: ['ok', ''],
      clockToleranceSeconds: 61,
      denylist: { keys: [1], other: [] },
      algorithms: ['none'],
      clockToleranceSecond: 5,
    })
    const ofPolicy = 'issuer audience source tokenType algorithms clockToleranceSeconds'
    const within =
      'callers.billing callers.reporting permissions[1] denylist.keys[0] denylist.other'
    const paths = [...ofPolicy.split(' '), ...within.split(' '), 'clockToleranceSecond ']
    expect(paths.filter((path) => !message.includes(path))).toEqual([])
  })

  it('is refused when it is no object', () => {
    for (const policy of [undefined, null, 'x', 1, [], [COMPLETE], () => COMPLETE]) {
      expect(refusalOf(policy)).toMatch(/serviceAuth polic(?:y|ies)/)
    }
    expect(() => parsePolicy(1)).toThrow('policy: the options must be an object')
  })

  it('repeats no value in its refusal', () => {
    const secret = 'https://user:s3cret@api.example.com'
    expect(withField('issuer', secret)).not.toContain('s3cret')
    expect(withField('jwksUri', secret)).not.toContain('s3cret')
    expect(refusalOf({ ...COMPLETE, jwksUri: secret })).toContain('jwksUri')
  })

  it('does not change when what it was made of does', () => {
    const callers = { billing: ['orders:read'] }
    const permissions = ['orders:read']
    const keys = ['k']
    const policy = parsePolicy({ ...COMPLETE, callers, permissions, denylist: { keys } })
    callers.billing.push('everything')
    permissions.pop()
    keys.pop()
    expect([...(policy.ceilings.get('billing') ?? [])]).toEqual(['orders:read'])
    expect(policy.permissions).toEqual(['orders:read'])
    expect([...policy.denied.keys]).toEqual(['k'])
  })

  it('gives each caller of a record a ceiling, and those of a list none', () => {
    const ceilings = (callers: unknown) => [...parsePolicy({ ...COMPLETE, callers }).ceilings]
    expect(ceilings(['a', 'b'])).toEqual([
      ['a', undefined],
      ['b', undefined],
    ])
    expect(ceilings(JSON.parse('{"__proto__":["x","y"],"constructor":[]}'))).toEqual([
      ['__proto__', new Set(['x', 'y'])],
      ['constructor', new Set()],
    ])
  })

  it('judges denylists that never change as one', () => {
    const denylist = [
      { keys: ['a'], issuedBefore: 5 },
      LIVE,
      { keys: ['b'], callers: ['c'], issuedBefore: 9 },
      { tokenIds: ['d'], issuedBefore: 7 },
    ]
    const { denied, liveDenylists } = parsePolicy({ ...COMPLETE, denylist })
    expect(denied).toEqual({
      keys: new Set(['a', 'b']),
      callers: new Set(['c']),
      tokenIds: new Set(['d']),
      issuedBefore: 9,
    })
    expect(liveDenylists).toEqual([LIVE])
    expect(liveDenylists[0]).toBe(LIVE)
    denylist.push(LIVE)
    expect(liveDenylists).toHaveLength(1)
  })

  it('may have a key set in place of an address', () => {
    const keySet = remoteKeySet({ jwksUri: 'https://x.test/jwks.json' })
    expect(refusalOf({ ...COMPLETE, keySet, issuer: 'anything' })).toBe('accepted')
    expect(refusalOf({ ...OAUTH2, keySet, jwksUri: undefined })).toBe('accepted')
    const all = refusalOf({ ...COMPLETE, keySet, jwksUri: 'https://x.test', apiBasePath: '/auth' })
    for (const name of ['jwksUri', 'apiBasePath']) expect(all).toContain(`${name} cannot be`)
    keySet.close()
  })

  it('may not require what no caller can hold', () => {
    const callers = { billing: ['a', 'b'], reporting: ['c'] }
    for (const permissions of [['d'], ['a', 'c'], ['a', 'b', 'c']]) {
      expect(refusalOf({ ...COMPLETE, callers, permissions })).toContain('permissions')
    }
    for (const permissions of [['a'], ['b', 'a'], ['c']]) {
      expect(refusalOf({ ...COMPLETE, callers, permissions })).toBe('accepted')
    }
    expect(refusalOf({ ...COMPLETE, callers: { billing: [] }, permissions: ['a'] })).toContain(
      'permissions',
    )
    expect(refusalOf({ ...COMPLETE, callers: ['billing'], permissions: ['a'] })).toBe('accepted')
  })
})

describe('several policies', () => {
  const numbered = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ ...COMPLETE, issuer: `https://${n}.example.com` }))

  it('are 2 to 8, in their order', () => {
    for (const count of [2, 8]) {
      const issuers = parsePolicies(numbered(count)).map(({ issuer }) => issuer)
      expect(issuers).toEqual(numbered(count).map(({ issuer }) => issuer))
    }
    for (const count of [0, 1, 9]) {
      expect(() => parsePolicies(numbered(count))).toThrow(
        new TypeError('serviceAuth policies: must be a list of 2 to 8 policies'),
      )
    }
  })

  it('name the one that is faulty, a hole included', () => {
    const faulty = [COMPLETE, { ...OAUTH2, audience: '' }]
    expect(() => parsePolicies(faulty)).toThrow('serviceAuth policy[1]: audience must be')
    expect(() => parsePolicies(new Array(2))).toThrow('serviceAuth policy[0]: ')
  })

  it('name every fault of every policy', () => {
    const faulty = [{ ...COMPLETE, audience: '', source: 1 }, OAUTH2, { ...OAUTH2, callers: [] }]
    expect(() => parsePolicies(faulty)).toThrow(
      /^serviceAuth policy\[0\]: audience must .*; source must .*\nserviceAuth policy\[2\]: callers must/,
    )
  })

  it('may share an issuer, but not for the same tokens', () => {
    const ofIssuer = { ...OAUTH2, issuer: COMPLETE.issuer }
    expect(parsePolicies([COMPLETE, ofIssuer, OAUTH2])).toHaveLength(3)
    for (const policy of [COMPLETE, ofIssuer]) {
      expect(() => parsePolicies([OAUTH2, policy, { ...policy, audience: 'another' }])).toThrow(
        new TypeError(
          'serviceAuth policies: [1] and [2] have the same issuer and the same option tokens',
        ),
      )
    }
  })
})

describe('a static key', () => {
  it.each([
    ['s-1', COMPLETE, true],
    ['d-1', COMPLETE, false],
    ['s-1', { ...COMPLETE, staticKeys: 'accept' }, false],
    ['s-1', OAUTH2, false],
  ])('%s under %j is refused: %s', (kid, policy, isRefused) => {
    expect(refusesStaticKey(kid, parsePolicy(policy))).toBe(isRefused)
  })
})
