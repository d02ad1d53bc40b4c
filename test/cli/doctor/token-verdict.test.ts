import { hostileTokens } from 'express-service-auth/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { checkToken, type TokenVerdict } from '../../../src/cli/doctor/token-verdict.js'
import { stepOf, stepsOf, type VerdictStep } from '../../../src/cli/doctor/verdict-step.js'
import { createAdmit, createVerifier } from '../../../src/verification/admit.js'
import { type KeySource, keySourceOf } from '../../../src/verification/key-set/key-set.js'
import { readKeySet } from '../../../src/verification/key-set/usable-keys.js'
import { parsePolicy } from '../../../src/verification/policy/policy.js'
import { issuer } from '../../support/issuer/issuer.js'
import { makeSigningKey, POLICY, tokenFrom, withKid } from '../../support/issuer/signing-keys.js'
import { createOAuth2TestIssuer } from '../../support/issuer/test-issuer.js'

const oauth2Issuer = await createOAuth2TestIssuer()
afterAll(() => oauth2Issuer.close())
const oauth2Cases = hostileTokens(oauth2Issuer)
const key = makeSigningKey('d-1')
const other = makeSigningKey('d-1')
const { keys } = readKeySet({ keys: [key.jwk] }, undefined)
const keySource: KeySource = {
  current: (kid) => keys.get(kid),
  find: async (kid) => keys.get(kid),
}

const policy = parsePolicy({
  ...POLICY,
  permissions: ['orders:read'],
  denylist: { tokenIds: ['stolen'] },
})
const STEPS = stepsOf(policy)
const GOOD = { permissions: ['orders:read'], jti: 'a' }

const judge = async (text: string, source: KeySource = keySource): Promise<TokenVerdict> =>
  (await checkToken(text, [{ policy, keySource: source }])).verdict

/** What breaks each step, in the order of the steps. */
const BREAKS: readonly [VerdictStep, string, Readonly<Record<string, unknown>>][] = [
  ['iss', 'claim_invalid', { iss: 'https://x.example' }],
  ['aud', 'claim_missing', { aud: undefined }],
  ['source', 'claim_invalid', { source: 'x' }],
  ['token_type', 'claim_invalid', { token_type: 'x' }],
  ['sub', 'claim_missing', { sub: undefined }],
  ['permissions', 'claim_invalid', { permissions: 'orders:read' }],
  ['exp', 'claim_missing', { exp: undefined }],
  ['iat', 'claim_invalid', { iat: 'now' }],
  ['nbf', 'claim_invalid', { nbf: 'now' }],
  ['jti', 'claim_invalid', { jti: 5 }],
  ['cnf', 'confirmation_unsupported', { cnf: { jkt: 'x' } }],
  ['times', 'token_expired', { exp: 5 }],
  ['denylist', 'token_denied', { jti: 'stolen' }],
  ['caller', 'caller_not_approved', { sub: 'stranger' }],
  ['required_permissions', 'permission_missing', { permissions: [] }],
]

const resultsOf = (failed: VerdictStep | undefined, steps = STEPS): unknown[] =>
  steps.map((step, index) => {
    const at = failed === undefined ? steps.length : steps.indexOf(failed)
    if (index === at) return { step, result: 'failed' }
    return { step, result: index < at ? 'passed' : 'not_reached' }
  })

describe('the verdict on a token', () => {
  // Every later step is broken too, so that the order of the steps is that of the decision.
  it.each(BREAKS.map(([step, reason], index) => [step, reason, index] as const))(
    'that fails at %s (%s) and at all that follows ends there',
    async (step, reason, index) => {
      const later = BREAKS.slice(index).map(([, , claims]) => claims)
      const claims = Object.assign({}, GOOD, ...later.reverse())
      const verdict = await judge(tokenFrom(key, { claims }))
      expect(verdict.reason).toBe(reason)
      expect(verdict.steps).toEqual(resultsOf(step))
      expect(verdict.claims).toBeDefined()
    },
  )

  it('tells which permission is missing', async () => {
    const verdict = await judge(tokenFrom(key, { claims: { ...GOOD, permissions: [] } }))
    expect(verdict).toMatchObject({ status: 403, missingPermission: 'orders:read' })
  })

  it.each<[VerdictStep, string, string]>([
    ['bearer', 'token_too_long', 'a'.repeat(9000)],
    ['header', 'token_malformed', 'abc'],
    ['header', 'token_malformed', `${tokenFrom(key)}\n`],
    ['key', 'static_key_refused', withKid(tokenFrom(key), 's-1')],
    ['key', 'key_unknown', withKid(tokenFrom(key), 'd-2')],
    ['signature', 'signature_invalid', tokenFrom(other, { claims: GOOD })],
  ])('shows no claim before the signature is verified: %s, %s', async (step, reason, text) => {
    const verdict = await judge(text)
    expect(verdict.reason).toBe(reason)
    expect(verdict.steps).toEqual(resultsOf(step))
    expect(verdict).not.toHaveProperty('claims')
  })

  it('shows no claim that the policy does not judge', async () => {
    const claims = { ...GOOD, refreshTokenHash1: 'hunter2', __proto__: null, sessionHandle: 'x' }
    const verdict = await judge(tokenFrom(key, { claims }))
    expect(verdict.outcome).toBe('accepted')
    expect(JSON.stringify(verdict)).not.toMatch(/hunter2|sessionHandle/)
  })
})

describe('every hostile token', () => {
  it.each([
    ['service tokens', issuer, hostileTokens(issuer), {}],
    ['OAuth 2.0 access tokens', oauth2Issuer, oauth2Cases, {}],
    ['OAuth 2.0 access tokens of any typ', oauth2Issuer, oauth2Cases, { accessTokenType: 'any' }],
  ])('of %s gets the verdict of admit, at its step', async (_, each, cases, change) => {
    const own = parsePolicy({ ...each.policy(), ...change })
    const source = keySourceOf(each.keySet)
    if (source === undefined) throw new Error('the issuer has a key set')
    const admit = createAdmit(createVerifier(own, source))
    let judged = 0
    for (const { name, authorization } of cases) {
      if (!/^bearer /i.test(authorization)) continue
      const rawHeaders = ['Authorization', authorization]
      const decision = await admit({ rawHeaders, headers: {} }, () => expect.unreachable())
      const { verdict } = await checkToken(authorization, [{ policy: own, keySource: source }])
      const reason = decision.ok ? undefined : decision.reason
      const failed = decision.ok ? undefined : stepOf(decision)
      expect([name, verdict.reason]).toEqual([name, reason])
      expect([name, verdict.steps]).toEqual([name, resultsOf(failed, stepsOf(own))])
      judged++
    }
    expect(judged).toBeGreaterThan(100)
  })
})
