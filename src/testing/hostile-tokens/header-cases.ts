import { createCipheriv, publicEncrypt, randomBytes } from 'node:crypto'
import { encodePart, rs256 } from '../issuer/compact-token.js'
import { publicJwk } from '../issuer/issuer-keys.js'
import type { Forge } from './forge.js'
import { type Draft, group, type HostileToken, nameOf } from './hostile-case.js'

/** Tokens whose header names no key or a wrong key, or changes how the token is read. */
export function headerCases(forge: Forge): HostileToken[] {
  return [
    ...group('The key id is text of 1 to 256 visible characters', keyIdCases(forge)),
    ...group('The key id names a key of the key set, and nothing else', unknownKeyCases(forge)),
    ...group('Nothing in the header changes how the token is read', criticalCases(forge)),
    ...group('A header with a version is one of a session', [
      ['version 5', forge.withHeader({ version: '5' })],
      ['version null', forge.withHeader({ version: null })],
    ]),
    ...group('The key comes from the key set, never from the token', suppliedKeyCases(forge)),
    ...(forge.isOAuth2
      ? []
      : group('Static keys sign no service tokens', [
          ['signed by the static key', forge.token(byStaticKey(forge))],
        ])),
    ...group('A JWE is no JWS', [['a JWE to the public key of the issuer', encrypted(forge)]]),
  ]
}

function keyIdCases({ key, withHeader }: Forge): Draft[] {
  const values = [undefined, null, '', 0, 1, true, [key.kid], { kid: key.kid }, [], {}]
  const texts = ['\n', '\u0000', '\u007f', 'k'.repeat(257), '\u043a\u043b\u044e\u0447']
  const around = [`${key.kid}\u0000`, `${key.kid}\n`, ` ${key.kid}`, `${key.kid} `]
  return [...values, ...texts, ...around].map(
    (kid): Draft => [nameOf('kid', kid, key.kid), withHeader({ kid })],
  )
}

function unknownKeyCases({ attacker, key, header, withHeader, token }: Forge): Draft[] {
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
  const signer = rs256(attacker.privateKey)
  return [
    ...kids.map((kid): Draft => [nameOf('kid', kid), withHeader({ kid })]),
    ['a good kid in capitals', withHeader({ kid: key.kid.toUpperCase() })],
    ['a good kid cut off', withHeader({ kid: key.kid.slice(0, -1) })],
    [
      'signed by a stranger under its own kid',
      token({ header: { ...header, kid: attacker.kid }, signer }),
    ],
    ['signed by a stranger under a good kid', token({ signer })],
  ]
}

function criticalCases({ claims, header, key, token, withHeader }: Forge): Draft[] {
  const crit = [['exp'], ['b64'], [], ['alg'], 'exp', null, {}, ['http://attacker.invalid']]
  const signer = rs256(key.privateKey)
  const b64 = { ...header, b64: false }
  const unencoded = token({ header: { ...b64, crit: ['b64'] }, payload: claims, signer })
  return [
    ...crit.map(
      (value): Draft => [`crit ${JSON.stringify(value)}`, withHeader({ crit: value, exp: 1 })],
    ),
    ['b64 false', withHeader({ b64: false })],
    ['b64 true', withHeader({ b64: true })],
    ['b64 null', withHeader({ b64: null })],
    ['b64 false, named in crit', unencoded],
  ]
}

function suppliedKeyCases({ attacker, header, token, withHeader }: Forge): Draft[] {
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

const byStaticKey = ({ header, staticKey }: Forge): Parameters<Forge['token']>[0] => ({
  header: { ...header, kid: staticKey.kid },
  signer: rs256(staticKey.privateKey),
})

/** Encrypts with RSA-OAEP and A256GCM (RFC 7516, section 7.1). */
function encrypted({ key, claims }: Forge): string {
  const header = encodePart({ alg: 'RSA-OAEP', enc: 'A256GCM', kid: key.kid, cty: 'JWT' })
  const secret = randomBytes(32)
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', secret, iv).setAAD(Buffer.from(header))
  const text = Buffer.concat([cipher.update(JSON.stringify(claims)), cipher.final()])
  const parts = [publicEncrypt(key.publicKey, secret), iv, text, cipher.getAuthTag()]
  return [header, ...parts.map(encodePart)].join('.')
}
