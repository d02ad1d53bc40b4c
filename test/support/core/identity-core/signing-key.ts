import { createPublicKey, generateKeyPair, type KeyObject, randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import type { KeyTimes } from './rotation.js'

export interface SigningKey extends KeyTimes {
  /** `d-<created ms>` of a dynamic key, `s-<uuid>` of a static one. */
  readonly kid: string
  readonly privateKey: KeyObject
}

export interface PublicJwk {
  readonly kty: 'RSA'
  readonly kid: string
  readonly n: string
  readonly e: string
  readonly alg: 'RS256'
  readonly use: 'sig'
}

const MODULUS_BITS = 2048

export async function makeDynamicKey(times: KeyTimes): Promise<SigningKey> {
  return { kid: `d-${times.createdMs}`, ...times, privateKey: await makePrivateKey() }
}

export async function makeStaticKey(createdMs: number): Promise<SigningKey> {
  const privateKey = await makePrivateKey()
  return { kid: `s-${randomUUID()}`, createdMs, signsFromMs: createdMs, privateKey }
}

export function isDynamic(key: SigningKey): boolean {
  return key.kid.startsWith('d-')
}

export function toPublicJwk({ kid, privateKey }: SigningKey): PublicJwk {
  const { n = '', e = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  return { kty: 'RSA', kid, n, e, alg: 'RS256', use: 'sig' }
}

async function makePrivateKey(): Promise<KeyObject> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS })
  return privateKey
}
