import { constants, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { Signer } from '../issuer/compact-token.js'
import { publicJwk } from '../issuer/issuer-keys.js'
import type { Forge } from './forge.js'
import { type Draft, group, type HostileToken } from './hostile-case.js'

/** Tokens with any algorithm other than RS256. */
export function algorithmCases(forge: Forge): HostileToken[] {
  return [
    ...group('The algorithm is exactly RS256', spellingCases(forge)),
    ...group('Unsigned tokens prove nothing', noneCases(forge)),
    ...group('The public key is no secret to sign with', hmacCases(forge)),
    ...group('Other algorithms are refused, rightly signed or not', otherCases(forge)),
  ]
}

function spellingCases({ header, token }: Forge): Draft[] {
  const values = [undefined, null, '', 256, true, ['RS256'], { alg: 'RS256' }]
  const spellings = ['rs256', 'Rs256', 'RS256 ', ' RS256', 'RS256\u0000', 'RS-256', 'RSA-SHA256']
  return [...values, ...spellings].map(
    (alg): Draft => [
      `alg ${JSON.stringify(alg) ?? 'missing'}`,
      token({ header: { ...header, alg } }),
    ],
  )
}

function noneCases({ header, token }: Forge): Draft[] {
  return ['none', 'None', 'NONE', 'nOnE'].flatMap((alg): Draft[] => [
    [
      `alg ${alg}, an empty signature`,
      token({ header: { ...header, alg }, signer: () => Buffer.of() }),
    ],
    [`alg ${alg}, a good signature`, token({ header: { ...header, alg } })],
  ])
}

function hmacCases({ header, key, token }: Forge): Draft[] {
  const { publicKey } = key
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const jwk = publicKey.export({ format: 'jwk' })
  const secrets: [string, string | Buffer][] = [
    ['SPKI PEM', pem],
    ['SPKI PEM without its last line break', pem.trim()],
    ['PKCS#1 PEM', publicKey.export({ type: 'pkcs1', format: 'pem' }).toString()],
    ['SPKI DER', publicKey.export({ type: 'spki', format: 'der' })],
    ['PKCS#1 DER', publicKey.export({ type: 'pkcs1', format: 'der' })],
    ['JWK text', JSON.stringify(jwk)],
    ['JWK text as published', JSON.stringify(publicJwk(key))],
    ['modulus', Buffer.from(String(jwk.n), 'base64url')],
    ['key id', key.kid],
    ['empty string', ''],
  ]
  return secrets.map(([name, secret]): Draft => {
    const signer: Signer = (input) => createHmac('sha256', secret).update(input).digest()
    return [`HS256 with the ${name}`, token({ header: { ...header, alg: 'HS256' }, signer })]
  })
}

function otherCases({ header, key, token }: Forge): Draft[] {
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
