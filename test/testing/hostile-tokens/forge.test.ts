import { verify } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { createForge } from '../../../src/testing/hostile-tokens/forge.js'
import type { SigningKey } from '../../../src/testing/issuer/issuer-keys.js'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'

const issuer = await createTestIssuer({ http: false })
afterAll(() => issuer.close())
const forge = createForge(issuer)

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
  expect(createForge(issuer).attacker).toBe(forge.attacker)
})
