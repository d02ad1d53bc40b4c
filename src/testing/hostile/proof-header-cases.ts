import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { es256, type Signer } from '../issuer/compact-token.js'
import { keyRingOf, type TestIssuer } from '../issuer/issuer.js'
import { type Draft, type HostileProof, nameOf, type ProofForge } from './forge.js'

/** Proofs whose header is wrong, or whose signature is not by the key in it. */
export function proofHeaderCases(
  forge: ProofForge,
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
): HostileProof[] {
  return [
    ...forge.group('The type is exactly dpop+jwt', typeCases(forge)),
    ...forge.group('The algorithm is exactly ES256', algorithmCases(forge, issuer)),
    ...forge.group('The key is the public P-256 key of the token', keyCases(forge)),
    ...forge.group('Nothing in the header changes how the proof is read', [
      ['crit of exp', forge.withHeader({ crit: ['exp'], exp: 1 })],
      ['crit of b64', forge.withHeader({ crit: ['b64'], b64: true })],
      ...forge.headerDrafts('crit', [[], null]),
    ]),
    ...forge.group('The signature covers header and payload, to the bit', signatureCases(forge)),
  ]
}

function typeCases({ header, headerDrafts, token }: ProofForge): Draft[] {
  const values = [undefined, null, '', 5, ['dpop+jwt'], 'JWT', 'at+jwt', 'DPoP+JWT', 'dpop+jwt ']
  const rest = JSON.stringify({ ...header, typ: undefined }).slice(1)
  return [
    ...headerDrafts('typ', [...values, 'application/dpop+jwt']),
    ['typ twice, the last wrong', token({ header: `{"typ":"dpop+jwt","typ":"JWT",${rest}` })],
  ]
}

function algorithmCases(
  { header, headerDrafts, key, withHeader, token }: ProofForge,
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
): Draft[] {
  const values = [undefined, null, '', 256, ['ES256'], 'es256', 'ES384', 'ES256K', 'EdDSA', 'PS256']
  const pem = key.publicKey.export({ type: 'spki', format: 'pem' })
  const rsa = keyRingOf(issuer).current().privateKey
  const signedBy = (alg: string, signer: Signer): string =>
    token({ header: { ...header, alg }, signer })
  const hmac =
    (secret: string | Buffer): Signer =>
    (input) =>
      createHmac('sha256', secret).update(input).digest()
  return [
    ...headerDrafts('alg', values),
    [
      'alg twice, the last wrong',
      token({
        header: `{"typ":"dpop+jwt","alg":"ES256","alg":"none","jwk":${JSON.stringify(key.jwk)}}`,
      }),
    ],
    ['alg none', signedBy('none', () => Buffer.alloc(64))],
    ['alg None with a good signature', withHeader({ alg: 'None' })],
    ['RS256 by the key of the issuer', signedBy('RS256', (input) => sign('sha256', input, rsa))],
    ['RS256 that says ES256', signedBy('ES256', (input) => sign('sha256', input, rsa))],
    ['HS256 with the PEM of the public key', signedBy('HS256', hmac(String(pem)))],
    ['HS256 with the public key as JWK', signedBy('HS256', hmac(JSON.stringify(key.jwk)))],
    [
      'HS256 with the DER of the public key',
      signedBy('HS256', hmac(key.publicKey.export({ type: 'spki', format: 'der' }))),
    ],
    ['HS256 with an empty secret', signedBy('HS256', hmac(''))],
  ]
}

function keyCases({ header, headerDrafts, key, attacker, withHeader, token }: ProofForge): Draft[] {
  const { jwk } = key
  const { d } = key.privateKey.export({ format: 'jwk' })
  const other = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const otherJwk = other.publicKey.export({ format: 'jwk' })
  const rsaJwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
    format: 'jwk',
  })
  const changed = (member: string, value: unknown): Draft => [
    nameOf(`jwk with ${member}`, value),
    withHeader({ jwk: { ...jwk, [member]: value } }),
  ]
  const offCurve = Buffer.from(jwk.y, 'base64url')
  offCurve.writeUInt8(offCurve.readUInt8(31) ^ 1, 31)
  return [
    ...headerDrafts('jwk', [undefined, null, '', 5, [], {}]),
    ...headerDrafts('jwk', { 'in a list': [jwk], 'as text': JSON.stringify(jwk) }),
    ...[undefined, null, 'RSA', 'oct', 'ec', 5].map((kty) => changed('kty', kty)),
    ...[undefined, null, 'P-384', 'secp256k1', 'p-256', 5].map((crv) => changed('crv', crv)),
    ...[undefined, null, '', 5, `${jwk.x}=`, `A${jwk.x}`].map((x) => changed('x', x)),
    ...[undefined, null, '', 5, attacker.jwk.y, offCurve.toString('base64url')].map((y) =>
      changed('y', y),
    ),
    ['jwk with the private member d', withHeader({ jwk: { ...jwk, d } })],
    ['jwk with d null', withHeader({ jwk: { ...jwk, d: null } })],
    ['jwk with the symmetric member k', withHeader({ jwk: { ...jwk, k: 'AAAA' } })],
    [
      'a key of another curve',
      token({ header: { ...header, jwk: otherJwk }, signer: es256(other.privateKey) }),
    ],
    ['an RSA key', withHeader({ jwk: rsaJwk })],
    [
      'the key of a stranger, who has signed',
      token({ header: { ...header, jwk: attacker.jwk }, signer: es256(attacker.privateKey) }),
    ],
    ['the key of a stranger, signed by the right one', withHeader({ jwk: attacker.jwk })],
    ['kid in place of jwk', withHeader({ jwk: undefined, kid: key.thumbprint })],
    [
      'jwk twice, the last that of a stranger',
      token({
        header: `{"typ":"dpop+jwt","alg":"ES256","jwk":${JSON.stringify(jwk)},"jwk":${JSON.stringify(attacker.jwk)}}`,
      }),
    ],
  ]
}

function signatureCases({ attacker, key, token, proofFor }: ProofForge): Draft[] {
  const signer = es256(key.privateKey)
  const altered = (alter: (signature: Buffer) => Uint8Array): string =>
    token({ signer: (input) => alter(Buffer.from(signer(input))) })
  const [header, payload] = proofFor().split('.')
  const [, otherPayload, otherSignature] = proofFor().split('.')
  const unsigned = `${header}.${payload}`
  return [
    ['by a stranger, with the right key beside it', token({ signer: es256(attacker.privateKey) })],
    ['in DER', token({ signer: (input) => sign('sha256', input, key.privateKey) })],
    [
      'with SHA-384',
      token({
        signer: (input) =>
          sign('sha384', input, { key: key.privateKey, dsaEncoding: 'ieee-p1363' }),
      }),
    ],
    ['all zero', altered(() => Buffer.alloc(64))],
    ['one byte short', altered((signature) => signature.subarray(1))],
    ['one byte more', altered((signature) => Buffer.concat([signature, Buffer.of(0)]))],
    ['a bit flipped', altered((signature) => signature.fill(signature.readUInt8(9) ^ 1, 9, 10))],
    ['both halves exchanged', altered((s) => Buffer.concat([s.subarray(32), s.subarray(0, 32)]))],
    ["another proof's signature", `${unsigned}.${otherSignature}`],
    ["another proof's payload", `${header}.${otherPayload}.${otherSignature?.slice(0, -4)}AAAA`],
  ]
}
