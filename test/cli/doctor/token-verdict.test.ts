import { hostileTokens } from 'express-service-auth/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { checkToken, type TokenVerdict } from '../../../src/cli/doctor/token-verdict.js'
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
const GOOD = { permissions: ['orders:read'], jti: 'a' }

const judge = async (text: string, source: KeySource = keySource): Promise<TokenVerdict> =>
  (await checkToken(text, [{ policy, keySource: source }])).verdict

/** What breaks the claims, in the order of the decision: the step, the reason, and the claim that it names. */
const BREAKS: readonly [string, string, string | undefined, Readonly<Record<string, unknown>>][] = [
  ['claims', 'claim_invalid', 'iss', { iss: 'https://x.example' }],
  ['claims', 'claim_missing', 'aud', { aud: undefined }],
  ['claims', 'claim_invalid', 'source', { source: 'x' }],
  ['claims', 'claim_missing', 'sub', { sub: undefined }],
  ['claims', 'confirmation_unsupported', 'cnf', { cnf: { jkt: 'x' } }],
  ['times', 'token_expired', 'exp', { exp: 5 }],
  ['denylist', 'token_denied', 'jti', { jti: 'stolen' }],
  ['caller', 'caller_not_approved', 'sub', { sub: 'stranger' }],
  ['permissions', 'permission_missing', undefined, { permissions: [] }],
]

/** The step that failed. Those before it have passed, and those after it were not reached. */
function failedStep({ steps }: TokenVerdict): string | undefined {
  const at = steps.findIndex(({ result }) => result === 'failed')
  const passed = at === -1 ? steps : steps.slice(0, at)
  expect(passed.map(({ result }) => result)).toEqual(passed.map(() => 'passed'))
  const rest = at === -1 ? [] : steps.slice(at + 1)
  expect(rest.map(({ result }) => result)).toEqual(rest.map(() => 'not_reached'))
  return steps[at]?.step
}

describe('the verdict on a token', () => {
  // Every later step is broken too, so that the order of the steps is that of the decision.
  it.each(BREAKS.map(([step, reason, claim], index) => [step, reason, claim, index] as const))(
    'that fails at %s (%s, %s) and at all that follows ends there',
    async (step, reason, claim, index) => {
      const later = BREAKS.slice(index).map(([, , , claims]) => claims)
      const claims = Object.assign({}, GOOD, ...later.reverse())
      const verdict = await judge(tokenFrom(key, { claims }))
      expect([failedStep(verdict), verdict.reason, verdict.claim]).toEqual([step, reason, claim])
      expect(verdict.claims).toBeDefined()
    },
  )

  it('tells which permission is missing', async () => {
    const verdict = await judge(tokenFrom(key, { claims: { ...GOOD, permissions: [] } }))
    expect(verdict).toMatchObject({ status: 403, missingPermission: 'orders:read' })
  })

  it.each([
    ['credential', 'token_too_long', 'a'.repeat(9000)],
    ['form', 'token_malformed', 'abc'],
    ['key', 'static_key_refused', withKid(tokenFrom(key), 's-1')],
    ['key', 'key_unknown', withKid(tokenFrom(key), 'd-2')],
    ['signature', 'signature_invalid', tokenFrom(other, { claims: GOOD })],
  ])('shows no claim before the signature is verified: %s, %s', async (step, reason, text) => {
    const verdict = await judge(text)
    expect([failedStep(verdict), verdict.reason]).toEqual([step, reason])
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
  ])('of %s gets the verdict of admit, at a step', async (_, each, cases, change) => {
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
      expect([name, verdict.reason]).toEqual([name, reason])
      expect([name, failedStep(verdict) === undefined]).toEqual([name, decision.ok])
      judged++
    }
    expect(judged).toBeGreaterThan(100)
  })
})
