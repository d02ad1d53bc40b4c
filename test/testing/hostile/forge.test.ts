import { verify } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { createTokenForge, nameOf } from '../../../src/testing/hostile/forge.js'
import type { SigningKey } from '../../../src/testing/issuer/issuer-keys.js'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'

const issuer = await createTestIssuer({ http: false })
afterAll(() => issuer.close())
const forge = createTokenForge(issuer)

function isSignedBy({ publicKey }: SigningKey, token: string): boolean {
  const at = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(at + 1), 'base64url')
  return verify('sha256', Buffer.from(token.slice(0, at)), publicKey, signature)
}

const payloadText = (token: string): string =>
  Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()

it('what it forges is rightly signed unless it is told otherwise', () => {
  const tokens = [
    forge.good,
    forge.token({}),
    forge.withClaims({ exp: 1 }),
    forge.withHeader({ crit: [] }),
    forge.withRawClaim('exp', '1e400'),
  ]
  for (const token of tokens) expect(isSignedBy(forge.key, token)).toBe(true)
  expect(isSignedBy(forge.key, forge.token({ signer: () => Buffer.alloc(256) }))).toBe(false)
})

it('raw JSON takes the place of one claim, and of no other', () => {
  const { exp: _exp, ...rest } = forge.claims
  expect(payloadText(forge.withRawClaim('exp', '1e400'))).toBe(
    `${JSON.stringify(rest).slice(0, -1)},"exp":1e400}`,
  )
})

it("the attacker's key is not the issuer's, and the same for every forge", () => {
  expect(forge.attacker.kid).not.toBe(forge.key.kid)
  expect(createTokenForge(issuer).attacker).toBe(forge.attacker)
})

it('a group shares its reason, and its status unless that is changed', () => {
  const made = { name: 'a', why: 'why', authorization: 'Bearer x.y.z' }
  expect(forge.group('why', [['a', 'x.y.z']])).toEqual([{ ...made, expect: 401 }])
  expect(forge.group('why', [['a', 'x.y.z']], { expect: 403 })).toEqual([{ ...made, expect: 403 }])
})

it('drafts are rightly signed, one for each value of a list or by its name', () => {
  const drafts = forge.claimDrafts('iss', ['x', forge.claims['iss']], forge.claims['iss'])
  expect(drafts.map(([name]) => name)).toEqual(['iss "x"', 'iss "(right)"'])
  const [[name, token] = ['', '']] = forge.headerDrafts('typ', { 'of a stranger': 'x' })
  expect(name).toBe('typ of a stranger')
  expect(isSignedBy(forge.key, token)).toBe(true)
  expect(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).toContain('"typ":"x"')
})

it('a name says which value stands where, and hides what varies', () => {
  expect(nameOf('exp', undefined)).toBe('exp missing')
  expect(nameOf('iss', ['http://127.0.0.1:4711'], 'http://127.0.0.1:4711')).toBe('iss ["(right)"]')
  expect(nameOf('kid', 'k'.repeat(500))).toHaveLength(100)
})
