import { afterAll, describe, expect, it } from 'vitest'
import { compactToken, rs256 } from '../../../src/testing/issuer/compact-token.js'
import {
  type Behaviour,
  respond,
  serve,
  startKeySetServer,
} from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, shapeOfKey } from '../../support/issuer/signing-keys.js'
import { knowToken } from '../../support/secret-search/index.js'
import { diagnose } from './doctor-kit.js'

const key = makeSigningKey('s-kid-like-any-other')
const FRESH = { 'cache-control': 'max-age=3630' }
/** As Keycloak publishes it, beside the key for signatures. */
const forEncryption = { ...shapeOfKey('for-encryption', 2048), use: 'enc', alg: 'RSA-OAEP' }
const published = serve({ keys: [key.jwk, shapeOfKey('next', 2048), forEncryption] }, FRESH)

const ISSUER = 'https://id.example/'
const STRICT = {
  tokens: 'oauth2',
  issuer: ISSUER,
  audience: 'orders',
  callers: ['billing'],
  permissionsClaim: 'scope',
}
const ANY = { ...STRICT, accessTokenType: 'any' }
/** The old scheme of the same issuer. */
const SERVICE = { ...POLICY, issuer: ISSUER, staticKeys: 'accept' }

const server = await startKeySetServer(published)
afterAll(() => server.close())

function tokenOf(claims: object = {}, typ = 'at+jwt'): string {
  const iat = Math.floor(Date.now() / 1000)
  const right = { iss: ISSUER, aud: 'orders', sub: 'billing', scope: 'orders:read', iat }
  const header = { alg: 'RS256', typ, kid: key.kid }
  const payload = { ...right, exp: iat + 300, ...claims }
  const token = compactToken(header, payload, rs256(key.privateKey))
  knowToken(token)
  return token
}

const ID_TOKEN = { nonce: 'n-0S6_WzA2Mj', email: 'anna@example.com' }

async function judge(policy: object, stdin = '', behaviour: Behaviour = published) {
  server.behave(behaviour)
  const withUri = (one: object): object => ({ ...one, jwksUri: server.url })
  const file = Array.isArray(policy) ? policy.map(withUri) : withUri(policy)
  const options = ['--strict', ...(stdin ? ['--token-stdin'] : [])]
  const ran = await diagnose(file, { options, stdin })
  const lines = ran.stdout.split('\n')
  const verdictAt = lines.findIndex((line) => line.startsWith('Token '))
  return {
    ...ran,
    headline: lines[verdictAt],
    claim: (name: string) =>
      lines
        .slice(verdictAt)
        .findLast((line) => line.startsWith(`  ${name} `))
        ?.replace(/ +/g, ' '),
  }
}

describe('with a policy for OAuth 2.0 tokens, the doctor', () => {
  it('shows no kinds of keys, which those of the core alone have, and warns of no key of other use', async () => {
    const { exitCode, stdout, object } = await judge(ANY)
    expect(exitCode).toBe(0)
    const [, keys] = stdout.split('\nKeys\n')
    expect(keys?.split('\n')).toEqual([
      '  s-kid-like-any-other  2048 bits  usable',
      '  next                  2048 bits  usable',
      '  for-encryption        2048 bits  not usable: other_algorithm',
      '',
    ])
    expect(object).toMatchObject({ warnings: [], faults: [] })
    expect(JSON.stringify(object['keySet'])).not.toContain('"kind"')
  })

  it('says at a 404 where such an issuer names its key set, and nothing of the core', async () => {
    const { object } = await judge(ANY, '', respond('404 Not Found', 'none'))
    expect(JSON.stringify(object['faults'])).toContain(
      'status 404 instead of 200: check jwksUri: it is the jwks_uri in {issuer}/.well-known/openid-configuration"',
    )
  })

  it.each([
    ['at+jwt', STRICT],
    ['any', ANY],
  ])('accepts an access token where the type is %s', async (_, policy) => {
    const { exitCode, headline } = await judge(policy, tokenOf())
    expect({ exitCode, headline }).toEqual({ exitCode: 0, headline: 'Token accepted' })
  })

  it('names the claim that shows an ID token, and nothing that it says', async () => {
    const { headline, stdout, object } = await judge(ANY, tokenOf(ID_TOKEN, 'JWT'))
    expect(headline).toBe('Token refused: id_token (nonce), the caller gets 401')
    expect(stdout).not.toMatch(/n-0S6|anna@/)
    expect(object['verdict']).toMatchObject({ reason: 'id_token', claim: 'nonce' })
  })

  it('says of a claim what the policy requires instead', async () => {
    const user = await judge(ANY, tokenOf({ sub: 'auth0|1' }))
    expect(user.claim('sub')).toBe(' sub "auth0|1" callers of the policy do not include it')
    const list = await judge(ANY, tokenOf({ aud: ['a', 'b'] }))
    expect(list.claim('aud')).toBe(' aud ["a","b"] the policy requires "orders"')
    const good = await judge(ANY, tokenOf({ aud: ['a', 'orders'] }))
    expect(good.claim('aud')).toBe(' aud ["a","orders"]')
    const old = await judge(SERVICE, tokenOf({ aud: ['orders'] }))
    expect(old.claim('aud')).toBe(' aud ["orders"] the policy requires "orders"')
  })
})

describe('with two policies of one issuer, the doctor', () => {
  it('says which of them has decided', async () => {
    const kinds = { source: 'microservice', token_type: 'service-access', permissions: [] }
    const [first, second] = [
      await judge([SERVICE, ANY], tokenOf()),
      await judge([SERVICE, ANY], tokenOf(kinds)),
    ]
    expect(first.headline).toBe(`Token accepted by the policy of ${ISSUER} for oauth2 tokens`)
    expect(second.headline).toBe(`Token accepted by the policy of ${ISSUER} for service tokens`)
    expect(second.object).toMatchObject({
      policies: [
        { issuer: ISSUER, tokens: 'service' },
        { issuer: ISSUER, tokens: 'oauth2' },
      ],
      verdict: { issuer: ISSUER, tokens: 'service' },
    })
    expect(first.stdout.match(/^Tokens .*$/gm)).toEqual(['Tokens  service', 'Tokens  oauth2'])
  })
})
