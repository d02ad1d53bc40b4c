import { describe, expect, it } from 'vitest'
import { readArguments } from '../../../src/cli/frame/arguments.js'
import {
  ISSUER_OPTION,
  POLICY_OPTION,
  readIssuer,
  readPolicy,
} from '../../../src/cli/input/policy-file.js'
import { POLICY } from '../../support/issuer/signing-keys.js'
import { temporaryFile } from '../kit.js'

const contextOf = (...argv: string[]) => ({
  arguments: readArguments(argv, { options: { ...POLICY_OPTION, ...ISSUER_OPTION }, maxValues: 0 }),
})

describe('a policy as JSON', () => {
  it('is what serviceAuth would make of it; others may read it', async () => {
    const path = await temporaryFile(JSON.stringify({ ...POLICY, staticKeys: 'accept' }), 0o644)
    const policy = await readPolicy(contextOf('--policy', path))
    expect(policy).toMatchObject({ issuer: POLICY.issuer, tokens: { staticKeys: 'accept' } })
    expect(policy.keySet).toMatchObject({ jwksUri: `${POLICY.issuer}/auth/jwt/jwks.json` })
  })

  it.each([
    ['not JSON', '{', 'the --policy file is not JSON'],
    ['no object', '7', 'serviceAuth policy: the options must be an object'],
    ['a list', JSON.stringify([POLICY, POLICY]), 'only doctor reads a list'],
    ['an empty list', '[]', 'only doctor reads a list'],
    ['invalid', JSON.stringify({ ...POLICY, audience: '' }), 'audience must be a non-empty string'],
    ['unknown in part', JSON.stringify({ ...POLICY, isuer: 1 }), 'isuer is not an option'],
    ['with a denylist that is none', JSON.stringify({ ...POLICY, denylist: 'redis' }), 'denylist'],
  ])('that is %s is refused in the policy’s own words', async (_what, text, message) => {
    const read = readPolicy(contextOf('--policy', await temporaryFile(text)))
    await expect(read).rejects.toMatchObject({ exitCode: 2, code: 'policy' })
    await expect(read).rejects.toThrow(message)
  })

  it('is needed where it is asked for', async () => {
    await expect(readPolicy(contextOf())).rejects.toThrow('--policy is missing')
  })
})

describe('the issuer', () => {
  it('is named by --issuer or by the policy', async () => {
    const path = await temporaryFile(JSON.stringify(POLICY))
    expect(await readIssuer(contextOf('--issuer', 'https://a'))).toEqual({
      issuer: 'https://a',
      policy: undefined,
    })
    expect(await readIssuer(contextOf('--policy', path))).toMatchObject({
      issuer: POLICY.issuer,
      policy: { audience: POLICY.audience },
    })
  })

  it.each(['http://core.internal:3567', 'https://tenant.auth0.com/', 'https://a?b#c', 'core'])(
    'may be %s',
    async (issuer) => {
      expect(await readIssuer(contextOf('--issuer', issuer))).toMatchObject({ issuer })
    },
  )

  it('is named by one of them', async () => {
    const both = contextOf('--issuer', 'https://a', '--policy', 'x')
    for (const context of [contextOf(), both]) {
      await expect(readIssuer(context)).rejects.toThrow('use either --issuer URL or --policy FILE')
    }
  })
})
