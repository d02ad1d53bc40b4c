import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { es256, type Signer } from '../issuer/compact-token.js'
import { keyRingOf, type TestIssuer } from '../issuer/issuer.js'
import type { HostileProof } from './hostile-proof.js'
import { type Draft, group, type ProofForge } from './proof-forge.js'

/** Proofs whose header is wrong, or whose signature is not by the key in it. */
export function proofHeaderCases(
  forge: ProofForge,
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
): HostileProof[] {
  return [
    ...group(forge, 'The type is exactly dpop+jwt', typeCases(forge)),
    ...group(forge, 'The algorithm is exactly ES256', algorithmCases(forge, issuer)),
    ...group(forge, 'The key is the public P-256 key of the token', keyCases(forge)),
    ...group(forge, 'Nothing in the header changes how the proof is read', [
      ['crit of exp', forge.withHeader({ crit: ['exp'], exp: 1 })],
      ['crit of b64', forge.withHeader({ crit: ['b64'], b64: true })],
      ['an empty crit', forge.withHeader({ crit: [] })],
      ['crit null', forge.withHeader({ crit: null })],
    ]),
    ...group(forge, 'The signature covers header and payload, to the bit', signatureCases(forge)),
  ]
}

const shown = (value: unknown): string => JSON.stringify(value) ?? 'missing'

function typeCases({ header, withHeader, proof, payload }: ProofForge): Draft[] {
  const values = [undefined, null, '', 5, ['dpop+jwt'], 'JWT', 'at+jwt', 'DPoP+JWT', 'dpop+jwt ']
  const rest = JSON.stringify({ ...header, typ: undefined }).slice(1)
  return [
    ...[...values, 'application/dpop+jwt'].map(
      (typ): Draft => [`typ ${shown(typ)}`, withHeader({ typ })],
    ),
    [
      'typ twice, the last wrong',
      proof({ header: `{"typ":"dpop+jwt","typ":"JWT",${rest}`, payload }),
    ],
  ]
}

function algorithmCases(
  { header, key, withHeader, proof }: ProofForge,
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
): Draft[] {
  const values = [undefined, null, '', 256, ['ES256'], 'es256', 'ES384', 'ES256K', 'EdDSA', 'PS256']
  const pem = key.publicKey.export({ type: 'spki', format: 'pem' })
  const rsa = keyRingOf(issuer).current().privateKey
  const signedBy = (alg: string, signer: Signer): string =>
    proof({ header: { ...header, alg }, signer })
  const hmac =
    (secret: string | Buffer): Signer =>
    (input) =>
      createHmac('sha256', secret).update(input).digest()
  return [
    ...values.map((alg): Draft => [`alg ${shown(alg)}`, withHeader({ alg })]),
    [
      'alg twice, the last wrong',
      proof({
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

function keyCases({ header, key, attacker, withHeader, proof }: ProofForge): Draft[] {
  const { jwk } = key
  const { d } = key.privateKey.export({ format: 'jwk' })
  const other = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const otherJwk = other.publicKey.export({ format: 'jwk' })
  const rsaJwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
    format: 'jwk',
  })
  const changed = (member: string, value: unknown): Draft => [
    `jwk with ${member} ${shown(value)?.slice(0, 20)}`,
    withHeader({ jwk: { ...jwk, [member]: value } }),
  ]
  const offCurve = Buffer.from(jwk.y, 'base64url')
  offCurve.writeUInt8(offCurve.readUInt8(31) ^ 1, 31)
  return [
    ...[undefined, null, '', 5, [], {}, [jwk], JSON.stringify(jwk)].map(
      (value): Draft => [`jwk ${shown(value).slice(0, 12)}`, withHeader({ jwk: value })],
    ),
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
      proof({ header: { ...header, jwk: otherJwk }, signer: es256(other.privateKey) }),
    ],
    ['an RSA key', withHeader({ jwk: rsaJwk })],
    [
      'the key of a stranger, who has signed',
      proof({ header: { ...header, jwk: attacker.jwk }, signer: es256(attacker.privateKey) }),
    ],
    ['the key of a stranger, signed by the right one', withHeader({ jwk: attacker.jwk })],
    ['kid in place of jwk', withHeader({ jwk: undefined, kid: key.thumbprint })],
    [
      'jwk twice, the last that of a stranger',
      proof({
        header: `{"typ":"dpop+jwt","alg":"ES256","jwk":${JSON.stringify(jwk)},"jwk":${JSON.stringify(attacker.jwk)}}`,
      }),
    ],
  ]
}

function signatureCases({ attacker, key, proof, proofFor }: ProofForge): Draft[] {
  const signer = es256(key.privateKey)
  const altered = (alter: (signature: Buffer) => Uint8Array): string =>
    proof({ signer: (input) => alter(Buffer.from(signer(input))) })
  const [header, payload] = proofFor().split('.')
  const [, otherPayload, otherSignature] = proofFor().split('.')
  const unsigned = `${header}.${payload}`
  return [
    ['by a stranger, with the right key beside it', proof({ signer: es256(attacker.privateKey) })],
    ['in DER', proof({ signer: (input) => sign('sha256', input, key.privateKey) })],
    [
      'with SHA-384',
      proof({
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
