import type { TestIssuer } from '../issuer/issuer.js'
import { algorithmCases } from './algorithm-cases.js'
import { claimCases, timeCases } from './claim-cases.js'
import { createForge, type Forge } from './forge.js'
import { formCases } from './form-cases.js'
import { headerCases } from './header-cases.js'
import type { HostileToken } from './hostile-case.js'
import { signatureCases } from './signature-cases.js'

/**
 * Values of the `Authorization` header that a receiver must refuse, each with the status that an
 * app with `serviceAuth(issuer.policy())` must answer. The signature is correct unless it is the
 * fault. Use them soon: they expire like the issuer's tokens.
 *
 * @throws TypeError if the issuer was not made by `createTestIssuer`.
 */
export function hostileTokens(issuer: TestIssuer): HostileToken[] {
  const forge = createForge(issuer)
  return [
    ...authorizationCases(forge),
    ...formCases(forge),
    ...algorithmCases(forge),
    ...headerCases(forge),
    ...signatureCases(forge),
    ...timeCases(forge),
    ...claimCases(forge),
  ]
}

/** Valid tokens in a header that is not exactly `Bearer <token>`. */
function authorizationCases({ good }: Forge): HostileToken[] {
  const why = 'The header is the scheme Bearer, one blank and one token'
  const values = {
    'an empty header': '',
    'the scheme alone': 'Bearer',
    'Basic credentials': `Basic ${Buffer.from('billing:secret').toString('base64')}`,
    'a token as Basic': `Basic ${good}`,
    'a token as DPoP': `DPoP ${good}`,
    'a token as Token': `Token ${good}`,
    'a token without a scheme': good,
    'a scheme that only begins like it': `Bearers ${good}`,
    'no blank': `Bearer${good}`,
    'two blanks': `Bearer  ${good}`,
    'a tab': `Bearer\t${good}`,
    'a blank and a tab': `Bearer \t${good}`,
    'a no-break space': `Bearer\u00a0${good}`,
    'a colon': `Bearer: ${good}`,
    'an equals sign': `Bearer=${good}`,
    'the scheme twice': `Bearer Bearer ${good}`,
    'two tokens': `Bearer ${good} ${good}`,
    'a comma list of tokens': `Bearer ${good},${good}`,
    'a comma list of credentials': `Bearer ${good}, Bearer ${good}`,
    'Basic credentials before it': `Basic YTpi, Bearer ${good}`,
    'trailing text': `Bearer ${good} and more`,
    'a trailing comma': `Bearer ${good},`,
    'a parameter before it': `Bearer realm="service" ${good}`,
    quotes: `Bearer "${good}"`,
    'angle brackets': `Bearer <${good}>`,
    null: 'Bearer null',
    undefined: 'Bearer undefined',
  }
  return Object.entries(values).map(([name, authorization]) => ({
    name: `Authorization: ${name}`,
    why,
    authorization,
    expect: 401,
  }))
}
