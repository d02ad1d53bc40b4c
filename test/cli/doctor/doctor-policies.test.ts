import { afterAll, describe, expect, it } from 'vitest'
import { createProof, createProofKey } from '../../../src/testing/issuer/bound-token.js'
import { refusingUrl, serve, startKeySetServer } from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom } from '../../support/issuer/signing-keys.js'
import { type Asked, diagnose, type Printed } from './doctor-kit.js'

/** Half a minute more than an hour: a busy machine takes its time. */
const GOOD = { 'cache-control': 'max-age=3630' }
const server = await startKeySetServer(serve({ keys: [makeSigningKey('d-1').jwk] }, GOOD))
afterAll(() => server.close())
const other = makeSigningKey('other-key')
const oauth2Keys = { keys: [other.jwk, makeSigningKey('other-key-2').jwk] }
const oauth2Server = await startKeySetServer(serve(oauth2Keys, GOOD))
afterAll(() => oauth2Server.close())

describe('a list of policies', () => {
  const OAUTH2 = {
    issuer: 'https://tenant.auth0.example/',
    audience: 'orders',
    tokens: 'oauth2',
    permissionsClaim: 'scope',
    accessTokenType: 'any',
    callers: ['billing'],
  }

  /** With changes of the first policy and of the second. */
  async function diagnoseBoth(examined: Asked = {}, ...changes: object[]) {
    const policies = [
      { ...POLICY, jwksUri: server.url, ...changes[0] },
      { ...OAUTH2, jwksUri: oauth2Server.url, ...changes[1] },
    ]
    const ran = await diagnose(policies, examined)
    return { ...ran, object: ran.object as Printed & { policies: Printed[] } }
  }

  it('is examined policy by policy', async () => {
    const { exitCode, stdout, stderr, object } = await diagnoseBoth({ options: ['--strict'] })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(object).toMatchObject({ command: 'doctor', ok: true })
    expect(object).not.toHaveProperty('keySet')
    expect(object).not.toHaveProperty('verdict')
    expect(object.policies.map(({ issuer, keySet }) => [issuer, keySet['jwksUri']])).toEqual([
      [POLICY.issuer, server.url],
      [OAUTH2.issuer, oauth2Server.url],
    ])
    expect(object.policies).toEqual([
      expect.objectContaining({ faults: [], warnings: [] }),
      expect.objectContaining({ faults: [], warnings: [] }),
    ])
    expect(stdout.match(/^Issuer {2}.*$/gm)).toEqual([
      `Issuer  ${POLICY.issuer}`,
      `Issuer  ${OAUTH2.issuer}`,
    ])
  })

  it('judges a proof by the policy that the token chooses', async () => {
    const key = createProofKey()
    const senderConstraint = { dpop: { baseUrls: ['https://orders.test'] } }
    const cnf = { jkt: key.thumbprint }
    const ofOther = { iss: OAUTH2.issuer, aud: 'orders', token_type: undefined, cnf }
    const token = tokenFrom(other, { claims: ofOther })
    const url = 'https://orders.test/orders'
    const proof = createProof(key, { token, method: 'GET', url, now: Date.now() / 1000 })
    const options = ['--token-stdin', '--proof-stdin', '--method', 'GET', '--url', '/orders']
    const stdin = `${token}\n${proof}`
    const accepted = await diagnoseBoth({ options, stdin }, {}, { senderConstraint })
    expect(accepted.object['verdict']).toMatchObject({ outcome: 'accepted', issuer: OAUTH2.issuer })
    expect(accepted.stdout).toMatch(/^ {2}proof +passed /m)
    // The other policy checks proofs, and does not judge this token.
    const refused = await diagnoseBoth({ options, stdin }, { senderConstraint })
    expect(refused.object['verdict']).toMatchObject({
      reason: 'confirmation_unsupported',
      issuer: OAUTH2.issuer,
    })
    const ofNone = tokenFrom(other, { claims: { iss: 'https://evil.example', cnf } })
    const unknown = await diagnoseBoth({ options, stdin: `${ofNone}\nx` })
    expect(unknown.object['verdict']).toMatchObject({ reason: 'claim_invalid' })
  })

  it.each([
    ['no token', '!', 'token_malformed', 'form'],
    [
      'a token without JSON',
      `${Buffer.from('{"alg":"RS256","kid":"k"}').toString('base64url')}.eA.eA`,
      'token_malformed',
      'form',
    ],
    [
      'a token of another issuer',
      tokenFrom(other, { claims: { iss: 'https://evil.example' } }),
      'claim_invalid',
      'claims',
    ],
    [
      'a token without iss',
      tokenFrom(other, { claims: { iss: undefined } }),
      'claim_missing',
      'claims',
    ],
  ])('%s chooses no policy', async (_what, token, reason, failed) => {
    const { exitCode, object } = await diagnoseBoth({ options: ['--token-stdin'], stdin: token })
    expect(exitCode).toBe(1)
    const verdict = object['verdict'] as { steps: { step: string; result: string }[] }
    expect(verdict).toMatchObject({ outcome: 'refused', reason, status: 401 })
    expect(verdict).not.toHaveProperty('issuer')
    expect(verdict.steps.map(({ step }) => step)).toEqual(['credential', 'form', 'claims'])
    expect(verdict.steps.find(({ result }) => result === 'failed')?.step).toBe(failed)
  })

  it('of which one has no answer ends with 3, and shows the others', async () => {
    const second = { jwksUri: await refusingUrl() }
    const { exitCode, stderr, object } = await diagnoseBoth({}, {}, second)
    expect(exitCode).toBe(3)
    expect(stderr).toContain('is unreachable')
    expect(object['error']).toMatchObject({ code: 'key_set_unavailable' })
    expect(object.policies.map(({ keySet }) => keySet['status'])).toEqual([200, null])
  })
})
