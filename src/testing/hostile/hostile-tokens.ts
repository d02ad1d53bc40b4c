import {
  constants,
  createCipheriv,
  generateKeyPairSync,
  publicEncrypt,
  randomBytes,
  sign,
} from 'node:crypto'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { encodePart, rs256, type Signer } from '../issuer/compact-token.js'
import type { TestIssuer } from '../issuer/issuer.js'
import { publicJwk } from '../issuer/issuer-keys.js'
import {
  alteredSignatures,
  createTokenForge,
  type Draft,
  type HostileToken,
  NO_TEXT,
  publicSecrets,
  type TokenForge,
} from './forge.js'
import { claimCases, oauth2Cases, timeCases } from './token-claim-cases.js'
import { formCases } from './token-form-cases.js'

/**
 * Values of the `Authorization` header that a receiver must refuse, each with the status that an
 * app with `serviceAuth(issuer.policy())` must answer. The signature is correct unless it is what is
 * wrong. Use the values soon: they expire like the issuer's tokens.
 *
 * @throws TypeError if the issuer was not made by `createTestIssuer`.
 *
 * @example
 * ```ts
 * import { createTestIssuer, hostileTokens } from 'express-service-auth/testing'
 *
 * const issuer = await createTestIssuer()
 * for (const { name, authorization, expect } of hostileTokens(issuer)) {
 *   console.log(`${name}: ${authorization.length} characters, ${expect}`)
 * }
 * await issuer.close()
 * ```
 */
export function hostileTokens(
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
): HostileToken[] {
  const forge = createTokenForge(issuer)
  return [
    ...authorizationCases(forge),
    ...formCases(forge),
    ...algorithmCases(forge),
    ...headerCases(forge),
    ...signatureCases(forge),
    ...timeCases(forge),
    ...claimCases(forge),
    ...(forge.isOAuth2 ? oauth2Cases(forge) : []),
  ]
}

/** Valid tokens in a header that is not exactly `Bearer <token>`. */
function authorizationCases({ good }: TokenForge): HostileToken[] {
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

/** Tokens whose signature does not match their header and payload. */
const signatureCases = (forge: TokenForge): HostileToken[] =>
  forge.groups({
    'The signature covers header and payload, to the bit': {
      ...alteredSignatures(forge),
      ...foreignCases(forge),
    },
  })

function foreignCases(forge: TokenForge): Readonly<Record<string, string>> {
  const { good, signer: sign, attacker, staticKey, token, withClaims } = forge
  const [header, payload, signature] = good.split('.')
  const other = withClaims({ jti: 'another-token', permissions: ['everything'] })
  const [, otherPayload, otherSignature] = other.split('.')
  const members = Object.entries(forge.header).reverse()
  const otherHeader = token({ header: Object.fromEntries(members) }).split('.')[0]
  return {
    "another token's signature": `${header}.${payload}.${otherSignature}`,
    "another token's payload": `${header}.${otherPayload}.${signature}`,
    "another token's header": `${otherHeader}.${payload}.${signature}`,
    'header and payload exchanged': `${payload}.${header}.${signature}`,
    'payload and signature exchanged': `${header}.${signature}.${payload}`,
    'a signature of the payload alone': token({ signer: () => sign(Buffer.from(payload ?? '')) }),
    'a signature of nothing': token({ signer: () => sign(Buffer.of()) }),
    "the static key's signature under the other kid": token({
      signer: rs256(staticKey.privateKey),
    }),
    "a stranger's signature": token({ signer: rs256(attacker.privateKey) }),
    'the payload as its own signature': `${header}.${payload}.${payload}`,
  }
}

/** Tokens with any algorithm other than RS256. */
const algorithmCases = (forge: TokenForge): HostileToken[] =>
  forge.groups({
    'The algorithm is exactly RS256': spellingCases(forge),
    'Unsigned tokens prove nothing': noneCases(forge),
    'The public key is no secret to sign with': hmacCases(forge),
    'Other algorithms are refused, rightly signed or not': otherCases(forge),
  })

function spellingCases({ headerDrafts }: TokenForge): Draft[] {
  const spellings = ['rs256', 'Rs256', 'RS256 ', ' RS256', 'RS256\u0000', 'RS-256', 'RSA-SHA256']
  return headerDrafts('alg', [...NO_TEXT, ['RS256'], { alg: 'RS256' }, ...spellings])
}

function noneCases({ header, token }: TokenForge): Draft[] {
  const signer: Signer = () => Buffer.of()
  return ['none', 'None', 'NONE', 'nOnE'].flatMap((alg): Draft[] => [
    [`alg ${alg}, an empty signature`, token({ header: { ...header, alg }, signer })],
    [`alg ${alg}, a good signature`, token({ header: { ...header, alg } })],
  ])
}

function hmacCases(forge: TokenForge): Draft[] {
  const { key } = forge
  const { publicKey } = key
  const { n: modulus } = publicKey.export({ format: 'jwk' })
  return publicSecrets(forge, publicKey, {
    'PKCS#1 PEM': publicKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    'PKCS#1 DER': publicKey.export({ type: 'pkcs1', format: 'der' }),
    'JWK text as published': JSON.stringify(publicJwk(key)),
    modulus: Buffer.from(String(modulus), 'base64url'),
    'key id': key.kid,
  })
}

function otherCases({ header, key, token }: TokenForge): Draft[] {
  const { privateKey } = key
  const pss = { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const ed = generateKeyPairSync('ed25519').privateKey
  const signers: Record<string, Signer> = {
    RS384: (input) => sign('sha384', input, privateKey),
    RS512: (input) => sign('sha512', input, privateKey),
    PS256: (input) => sign('sha256', input, pss),
    ES256: (input) => sign('sha256', input, { key: ec, dsaEncoding: 'ieee-p1363' }),
    EdDSA: (input) => sign(null, input, ed),
  }
  return Object.entries(signers).flatMap(([alg, signer]): Draft[] => [
    [alg, token({ header: { ...header, alg }, signer })],
    [`${alg} that says RS256`, token({ signer })],
  ])
}

const ONE_OF_THE_SET = 'The key id names a key of the key set, and nothing else'

/** Tokens whose header names no key or a wrong key, or changes how the token is read. */
function headerCases(forge: TokenForge): HostileToken[] {
  const { header, staticKey, token, isOAuth2 } = forge
  const signedByStatic = token({
    header: { ...header, kid: staticKey.kid },
    signer: rs256(staticKey.privateKey),
  })
  const ofStatic = {
    'Static keys sign no service tokens': { 'signed by the static key': signedByStatic },
  }
  return [
    ...forge.groups({ [ONE_OF_THE_SET]: unknownKeyCases(forge) }, { orElse: 503 }),
    ...forge.groups({
      [ONE_OF_THE_SET]: {
        'signed by a stranger under a good kid': token({ signer: signerOf(forge) }),
      },
      'The key id is text of 1 to 256 visible characters': keyIdCases(forge),
      'Nothing in the header changes how the token is read': criticalCases(forge),
      'A header with a version is one of a session': forge.headerDrafts('version', ['5', null]),
      'The key comes from the key set, never from the token': suppliedKeyCases(forge),
      ...(!isOAuth2 && ofStatic),
      'A JWE is no JWS': { 'a JWE to the public key of the issuer': encrypted(forge) },
    }),
  ]
}

const signerOf = ({ attacker }: TokenForge): Signer => rs256(attacker.privateKey)

function keyIdCases({ key, headerDrafts }: TokenForge): Draft[] {
  const { kid } = key
  const texts = ['\n', '\u0000', '\u007f', 'k'.repeat(257), '\u043a\u043b\u044e\u0447']
  const around = [`${kid}\u0000`, `${kid}\n`, ` ${kid}`, `${kid} `]
  return headerDrafts('kid', [...NO_TEXT, [kid], { kid }, ...texts, ...around], kid)
}

function unknownKeyCases(forge: TokenForge): Draft[] {
  const { attacker, key, header, headerDrafts, token } = forge
  const paths = ['https://attacker.invalid/key', '../../../../dev/null', '/etc/passwd']
  const inherited = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '0']
  const others = {
    'of a good one in capitals': key.kid.toUpperCase(),
    'of a good one, cut off': key.kid.slice(0, -1),
  }
  const signer = signerOf(forge)
  return [
    ...headerDrafts('kid', [...paths, "x'/**/OR/**/'1'='1", ...inherited]),
    ...headerDrafts('kid', others),
    [
      'signed by a stranger under its own kid',
      token({ header: { ...header, kid: attacker.kid }, signer }),
    ],
  ]
}

function criticalCases({ header, headerDrafts, token, withHeader }: TokenForge): Draft[] {
  const crit = [['exp'], ['b64'], [], ['alg'], 'exp', null, {}, ['http://attacker.invalid']]
  const unencoded = token({ header: { ...header, b64: false, crit: ['b64'] } })
  return [
    ...crit.map(
      (value): Draft => [`crit ${JSON.stringify(value)}`, withHeader({ crit: value, exp: 1 })],
    ),
    ...headerDrafts('b64', [false, true, null]),
    ['b64 false, named in crit', unencoded],
  ]
}

function suppliedKeyCases({ attacker, header, token, withHeader }: TokenForge): Draft[] {
  const { publicKey, kid } = attacker
  const certificate = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const address = 'https://attacker.invalid/keys.json'
  const parameters = { jwk: publicJwk(attacker), jku: address, x5c: [certificate], x5u: address }
  const signer = rs256(attacker.privateKey)
  return Object.entries(parameters).flatMap(([name, value]): Draft[] => {
    const supplied = { ...header, [name]: value }
    return [
      [`${name} of a stranger, with its kid`, token({ header: { ...supplied, kid }, signer })],
      [`${name} of a stranger, with a good kid`, token({ header: supplied, signer })],
      [`${name} of a stranger, rightly signed`, token({ header: supplied })],
      [`${name} null, rightly signed`, withHeader({ [name]: null })],
    ]
  })
}

/** Encrypts with RSA-OAEP and A256GCM (RFC 7516, section 7.1). */
function encrypted({ key, claims }: TokenForge): string {
  const header = encodePart({ alg: 'RSA-OAEP', enc: 'A256GCM', kid: key.kid, cty: 'JWT' })
  const secret = randomBytes(32)
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', secret, iv).setAAD(Buffer.from(header))
  const text = Buffer.concat([cipher.update(JSON.stringify(claims)), cipher.final()])
  const parts = [publicEncrypt(key.publicKey, secret), iv, text, cipher.getAuthTag()]
  return [header, ...parts.map(encodePart)].join('.')
}
