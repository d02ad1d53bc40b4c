import { createCipheriv, publicEncrypt, randomBytes } from 'node:crypto'
import { encodePart, rs256, type Signer } from '../issuer/compact-token.js'
import { publicJwk } from '../issuer/issuer-keys.js'
import type { Draft, HostileToken, TokenForge } from './forge.js'

const ONE_OF_THE_SET = 'The key id names a key of the key set, and nothing else'

const signerOf = ({ attacker }: TokenForge): Signer => rs256(attacker.privateKey)

/** Tokens whose header names no key or a wrong key, or changes how the token is read. */
export function headerCases(forge: TokenForge): HostileToken[] {
  return [
    ...forge.group('The key id is text of 1 to 256 visible characters', keyIdCases(forge)),
    ...forge
      .group(ONE_OF_THE_SET, unknownKeyCases(forge))
      .map((unknown): HostileToken => ({ ...unknown, orElse: 503 })),
    ...forge.group(ONE_OF_THE_SET, [
      ['signed by a stranger under a good kid', forge.token({ signer: signerOf(forge) })],
    ]),
    ...forge.group('Nothing in the header changes how the token is read', criticalCases(forge)),
    ...forge.group(
      'A header with a version is one of a session',
      forge.headerDrafts('version', ['5', null]),
    ),
    ...forge.group('The key comes from the key set, never from the token', suppliedKeyCases(forge)),
    ...(forge.isOAuth2
      ? []
      : forge.group('Static keys sign no service tokens', [
          ['signed by the static key', forge.token(byStaticKey(forge))],
        ])),
    ...forge.group('A JWE is no JWS', [
      ['a JWE to the public key of the issuer', encrypted(forge)],
    ]),
  ]
}

function keyIdCases({ key, headerDrafts }: TokenForge): Draft[] {
  const values = [undefined, null, '', 0, 1, true, [key.kid], { kid: key.kid }, [], {}]
  const texts = ['\n', '\u0000', '\u007f', 'k'.repeat(257), '\u043a\u043b\u044e\u0447']
  const around = [`${key.kid}\u0000`, `${key.kid}\n`, ` ${key.kid}`, `${key.kid} `]
  return headerDrafts('kid', [...values, ...texts, ...around], key.kid)
}

function unknownKeyCases(forge: TokenForge): Draft[] {
  const { attacker, key, header, headerDrafts, withHeader, token } = forge
  const kids = [
    'https://attacker.invalid/key',
    '../../../../dev/null',
    '/etc/passwd',
    "x'/**/OR/**/'1'='1",
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '0',
  ]
  return [
    ...headerDrafts('kid', kids),
    ['a good kid in capitals', withHeader({ kid: key.kid.toUpperCase() })],
    ['a good kid cut off', withHeader({ kid: key.kid.slice(0, -1) })],
    [
      'signed by a stranger under its own kid',
      token({ header: { ...header, kid: attacker.kid }, signer: signerOf(forge) }),
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
  const jwk = publicJwk(attacker)
  const { publicKey, kid } = attacker
  const certificate = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const address = 'https://attacker.invalid/keys.json'
  const parameters = { jwk, jku: address, x5c: [certificate], x5u: address }
  const signer = rs256(attacker.privateKey)
  return Object.entries(parameters).flatMap(([name, value]): Draft[] => [
    [
      `${name} of a stranger, with its kid`,
      token({ header: { ...header, [name]: value, kid }, signer }),
    ],
    [
      `${name} of a stranger, with a good kid`,
      token({ header: { ...header, [name]: value }, signer }),
    ],
    [`${name} of a stranger, rightly signed`, withHeader({ [name]: value })],
    [`${name} null, rightly signed`, withHeader({ [name]: null })],
  ])
}

const byStaticKey = ({ header, staticKey }: TokenForge): Parameters<TokenForge['token']>[0] => ({
  header: { ...header, kid: staticKey.kid },
  signer: rs256(staticKey.privateKey),
})

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
