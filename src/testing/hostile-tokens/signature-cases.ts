import { rs256 } from '../issuer/compact-token.js'
import type { Forge } from './forge.js'
import { type Draft, group, type HostileToken } from './hostile-case.js'

/** Tokens whose signature does not match their header and payload. */
export function signatureCases(forge: Forge): HostileToken[] {
  return [
    ...group('The signature covers header and payload, to the bit', [
      ...bentCases(forge),
      ...foreignCases(forge),
    ]),
  ]
}

function bentCases({ good, key, token }: Forge): Draft[] {
  const sign = rs256(key.privateKey)
  const bent = (bend: (signature: Buffer) => Uint8Array): string =>
    token({ signer: (input) => bend(Buffer.from(sign(input))) })
  const flip = (at: number, bit: number) => (signature: Buffer) => {
    signature.writeUInt8(signature.readUInt8(at) ^ bit, at)
    return signature
  }
  const unsigned = good.slice(0, good.lastIndexOf('.'))
  return [
    ['an empty signature', `${unsigned}.`],
    ['one byte short', bent((signature) => signature.subarray(1))],
    ['its last byte short', bent((signature) => signature.subarray(0, -1))],
    ['one byte of one', bent(() => Buffer.of(1))],
    ['an byte more in front', bent((signature) => Buffer.concat([Buffer.of(0), signature]))],
    ['an byte more behind', bent((signature) => Buffer.concat([signature, Buffer.of(0)]))],
    ['all zero', bent(() => Buffer.alloc(256))],
    ['the number one', bent(() => Buffer.concat([Buffer.alloc(255), Buffer.of(1)]))],
    ['all ones', bent(() => Buffer.alloc(256, 0xff))],
    ['twice in a row', bent((signature) => Buffer.concat([signature, signature]))],
    ['back to front', bent((signature) => signature.reverse())],
    ['the first bit flipped', bent(flip(0, 0x80))],
    ['a bit in the middle flipped', bent(flip(128, 0x01))],
    ['the last bit flipped', bent(flip(255, 0x01))],
  ]
}

function foreignCases({ good, key, attacker, staticKey, token, withClaims }: Forge): Draft[] {
  const [header, payload, signature] = good.split('.')
  const other = withClaims({ jti: 'another-token', permissions: ['everything'] })
  const [, otherPayload, otherSignature] = other.split('.')
  const otherHeader = token({ header: { alg: 'RS256', kid: key.kid } }).split('.')[0]
  const sign = rs256(key.privateKey)
  return [
    ["another token's signature", `${header}.${payload}.${otherSignature}`],
    ["another token's payload", `${header}.${otherPayload}.${signature}`],
    ["another token's header", `${otherHeader}.${payload}.${signature}`],
    ['header and payload exchanged', `${payload}.${header}.${signature}`],
    ['payload and signature exchanged', `${header}.${signature}.${payload}`],
    ['a signature of the payload alone', token({ signer: () => sign(Buffer.from(payload ?? '')) })],
    ['a signature of nothing', token({ signer: () => sign(Buffer.of()) })],
    [
      "the static key's signature under the other kid",
      token({ signer: rs256(staticKey.privateKey) }),
    ],
    ["a stranger's signature", token({ signer: rs256(attacker.privateKey) })],
    ['the payload as its own signature', `${header}.${payload}.${payload}`],
  ]
}
