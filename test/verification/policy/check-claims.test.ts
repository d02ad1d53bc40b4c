import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkClaims } from '../../../src/verification/policy/check-claims.js'
import { parsePolicy } from '../../../src/verification/policy/policy.js'

const NOW = 1_800_000_000
const POLICY = {
  issuer: 'https://api.example.com',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: { billing: ['read', 'write'], reporting: ['read'] },
}
const CLAIMS = {
  iss: 'https://api.example.com',
  aud: 'orders',
  sub: 'billing',
  source: 'microservice',
  token_type: 'service-access',
  permissions: ['read', 'other'],
  iat: NOW - 10,
  exp: NOW + 300,
}

const payloadOf = (claims: object) => {
  const text = JSON.stringify(claims)
  return { text, members: JSON.parse(text) }
}

const judged = (claims: object, policy: object = {}, now = NOW) =>
  checkClaims(
    { keyId: 'k', payload: payloadOf({ ...CLAIMS, ...claims }) },
    parsePolicy({ ...POLICY, ...policy }),
    now,
  )

const reasonOf = (claims: object, policy: object = {}, now = NOW): string => {
  const decision = judged(claims, policy, now)
  return decision.ok ? 'accepted' : decision.reason
}

describe('the binding of a token', () => {
  const certificate = { cnf: { 'x5t#S256': 'digest' } }
  const key = { cnf: { jkt: 'thumbprint' } }
  const mtls = { mtls: true }
  const unsupported = { reason: 'confirmation_unsupported', evidence: { claim: 'cnf', keyId: 'k' } }

  it.each<[object, object, object]>([
    [{}, {}, { binding: 'none' }],
    [{}, mtls, { binding: 'none' }],
    [
      {},
      { ...mtls, required: true },
      { reason: 'confirmation_missing', evidence: { claim: 'cnf', keyId: 'k' } },
    ],
    [certificate, mtls, { binding: { kind: 'certificate', thumbprint: 'digest' } }],
    [
      key,
      { dpop: { baseUrls: ['https://a.test'] } },
      { binding: { kind: 'dpop', thumbprint: 'thumbprint' } },
    ],
    [certificate, {}, unsupported],
    [key, mtls, unsupported],
    [{ cnf: {} }, mtls, unsupported],
    [{ cnf: null }, {}, unsupported],
  ])('of %j under the constraint %j: %j', (claims, senderConstraint, expected) => {
    const decision = judged(claims, { senderConstraint })
    if (!decision.ok) {
      expect(decision).toMatchObject(expected)
      return
    }
    const { binding, identity } = decision.value
    expect({ binding }).toEqual(expected)
    expect(identity.confirmation).toEqual(binding === 'none' ? undefined : binding)
  })
})

describe('a judgement', () => {
  it('grants the permissions of the token within the ceiling', () => {
    const decision = judged({})
    if (!decision.ok) throw new Error(decision.reason)
    expect([...decision.value.identity.permissions]).toEqual(['read'])
    expect([...decision.value.identity.permissions]).toEqual(['read'])
  })

  it('names the reason and what it is about', () => {
    expect(judged({ sub: 'nobody' })).toMatchObject({
      reason: 'caller_not_approved',
      evidence: { claim: 'sub', caller: 'nobody', keyId: 'k' },
    })
    expect(judged({}, { permissions: ['write'] })).toMatchObject({
      reason: 'permission_missing',
      evidence: { permission: 'write', caller: 'billing', keyId: 'k' },
    })
  })

  it('puts what ends in a 401 before what ends in a 403', () => {
    const stranger = { sub: 'stranger' }
    expect(reasonOf(stranger)).toBe('caller_not_approved')
    expect(reasonOf({ ...stranger, exp: NOW - 99 })).toBe('token_expired')
    expect(reasonOf({ ...stranger, nbf: NOW + 99 })).toBe('token_not_yet_valid')
    expect(reasonOf({ ...stranger, aud: 'x' })).toBe('claim_invalid')
    expect(reasonOf({ ...stranger, permissions: 'read' })).toBe('claim_invalid')
    expect(reasonOf({ ...stranger, jti: 'bad' }, { denylist: { tokenIds: ['bad'] } })).toBe(
      'token_denied',
    )
    expect(reasonOf(stranger, { denylist: { issuedBefore: NOW } })).toBe('token_issued_too_early')
  })

  it('tells a denied caller from one that was never approved', () => {
    const denylist = { callers: ['billing', 'stranger'] }
    expect(reasonOf({}, { denylist })).toBe('caller_denied')
    expect(reasonOf({ sub: 'stranger' }, { denylist })).toBe('caller_denied')
    expect(reasonOf({ sub: 'nobody' }, { denylist })).toBe('caller_not_approved')
  })

  it('accepts whatever the claims that it does not know are', () => {
    const more = { nbf: NOW, jti: 'x', foo: null, bar: [{}], constructor: 1, typ: 'x' }
    expect(reasonOf(more)).toBe('accepted')
  })

  it.each<[string, ...unknown[]]>([
    ...['iss', 'source', 'token_type'].map((claim): [string, null] => [claim, null]),
    ['aud', null, ['orders']],
    ['sub', null, ''],
    ['permissions', null, ['read', 1], [1, 'read']],
    ...['exp', 'iat', 'nbf'].map((claim): [string, ...unknown[]] => [
      claim,
      null,
      '1',
      [NOW],
      true,
    ]),
    ['jti', null, 1, ['x'], {}, '', 'x'.repeat(257)],
  ])('takes no %s of another form', (claim, ...values) => {
    for (const value of values) {
      expect(judged({ [claim]: value })).toEqual({
        ok: false,
        reason: 'claim_invalid',
        evidence: { claim, keyId: 'k' },
      })
    }
  })

  it.each(['iss', 'aud', 'sub', 'source', 'token_type', 'permissions', 'exp'])(
    'needs the claim %s',
    (claim) => {
      expect(judged({ [claim]: undefined })).toEqual({
        ok: false,
        reason: 'claim_missing',
        evidence: { claim, keyId: 'k' },
      })
    },
  )

  it('needs no iat, nbf and jti, and takes a jti of 1 to 256 characters', () => {
    expect(reasonOf({ iat: undefined })).toBe('accepted')
    for (const jti of ['x', 'x'.repeat(256)]) expect(reasonOf({ jti })).toBe('accepted')
  })

  it('says all of the caller that the token says', () => {
    const decision = judged({ jti: 'x' })
    if (!decision.ok) throw new Error(decision.reason)
    expect(decision.value.identity).toMatchObject({
      name: 'billing',
      issuer: POLICY.issuer,
      audience: 'orders',
      tokenId: 'x',
      issuedAt: NOW - 10,
      expiresAt: NOW + 300,
      keyId: 'k',
      claims: { ...CLAIMS, jti: 'x' },
    })
  })

  it.each([0, 0.5, 60])('compares fractions of a second, with a tolerance of %s s', (tolerance) => {
    const policy = { clockToleranceSeconds: tolerance }
    for (const [reason, last, first] of [
      ['token_expired', { exp: NOW - tolerance + 0.25 }, { exp: NOW - tolerance }],
      ['token_not_yet_valid', { nbf: NOW + tolerance }, { nbf: NOW + tolerance + 0.25 }],
      ['token_not_yet_valid', { iat: NOW + tolerance }, { iat: NOW + tolerance + 0.25 }],
    ] as const) {
      expect(reasonOf(last, policy)).toBe('accepted')
      expect(reasonOf(first, policy)).toBe(reason)
    }
  })

  const TIMES = { clockToleranceSeconds: 5, maxLifetimeSeconds: 600 }

  it.each([
    ['token_expired', 'exp', { iat: NOW - 600, exp: NOW - 4 }, { iat: NOW - 600, exp: NOW - 5 }],
    ['token_not_yet_valid', 'nbf', { nbf: NOW + 5 }, { nbf: NOW + 6 }],
    ['token_not_yet_valid', 'iat', { iat: NOW + 5 }, { iat: NOW + 6 }],
    ['token_lifetime_too_long', 'exp', { iat: NOW - 305 }, { iat: NOW - 306 }],
    [
      'token_lifetime_too_long',
      'exp',
      { iat: NOW + 5, exp: NOW + 605 },
      { iat: NOW + 5, exp: NOW + 606 },
    ],
    [
      'token_lifetime_too_long',
      'exp',
      { iat: undefined, exp: NOW + 605 },
      { iat: undefined, exp: NOW + 606 },
    ],
  ])('is %s by %s only beyond the clock tolerance', (reason, claim, last, first) => {
    expect(reasonOf(last, TIMES)).toBe('accepted')
    expect(judged(first, TIMES)).toMatchObject({ reason, evidence: { claim } })
  })

  it.each([
    ['nbf', { nbf: NOW + 1 }, NOW + 1],
    ['iat', {}, NOW - 10],
    ['the longest lifetime', { iat: undefined }, NOW - 300],
  ])('holds from %s on, with the clock tolerance, until exp', (_name, claims, earliest) => {
    const decision = judged(claims, TIMES)
    if (!decision.ok) throw new Error(decision.reason)
    const { validFrom, validUntil } = decision.value
    expect([validFrom, validUntil]).toEqual([earliest - 5, NOW + 300])
  })

  it('would be passed again exactly within the span that it names', () => {
    const time = fc.integer({ min: -400, max: 400 })
    const optional = fc.option(time, { nil: undefined })
    fc.assert(
      fc.property(
        fc.record({ exp: time, nbf: optional, iat: optional, now: time, later: time }),
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: 1, max: 500 }),
        ({ exp, nbf, iat, now, later }, clockToleranceSeconds, maxLifetimeSeconds) => {
          const claims = {
            exp: NOW + exp,
            nbf: nbf === undefined ? undefined : NOW + nbf,
            iat: iat === undefined ? undefined : NOW + iat,
          }
          const policy = { clockToleranceSeconds, maxLifetimeSeconds }
          const decision = judged(claims, policy, NOW + now)
          if (!decision.ok) return
          const { validFrom, validUntil } = decision.value
          const holds = NOW + later >= validFrom && NOW + later < validUntil
          if (holds) expect(reasonOf(claims, policy, NOW + later)).toBe('accepted')
          expect(validUntil).toBeLessThanOrEqual(claims.exp)
        },
      ),
    )
  })
})
