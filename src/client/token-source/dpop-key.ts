import { randomUUID, webcrypto } from 'node:crypto'
import { type P256Key, thumbprintOf } from '../../base/jwk.js'
import { hash } from '../../base/supported-node.js'

/** The facts that a proof states. */
export interface ProofClaims {
  readonly method: string
  /** Without query and fragment. */
  readonly uri: string
  readonly token: string
  /** Seconds since the epoch, by the clock of the core. */
  readonly iat: number
}

/** A key pair of this process that signs proofs (DPoP, RFC 9449). The private key cannot be exported. */
export interface DpopKey {
  /** Returns its thumbprint, to which tokens are bound. */
  thumbprint(): Promise<string>
  sign(claims: ProofClaims): Promise<string>
}

interface Pair {
  readonly privateKey: webcrypto.CryptoKey
  readonly thumbprint: string
  /** The encoded header of all proofs. */
  readonly header: string
}

/** The pair is generated when it is first needed. */
export function createDpopKey(): DpopKey {
  let pair: Promise<Pair> | undefined
  const pairOnce = (): Promise<Pair> => (pair ??= generatePair())
  return {
    thumbprint: async () => (await pairOnce()).thumbprint,
    async sign({ method, uri, token, iat }) {
      const { privateKey, header } = await pairOnce()
      const ath = hash('sha256', token, 'base64url')
      const payload = encode({ jti: randomUUID(), htm: method, htu: uri, iat, ath })
      const input = `${header}.${payload}`
      const signature = await webcrypto.subtle.sign(ES256, privateKey, Buffer.from(input))
      return `${input}.${Buffer.from(signature).toString('base64url')}`
    },
  }
}

const ES256 = { name: 'ECDSA', hash: 'SHA-256' }

async function generatePair(): Promise<Pair> {
  const curve = { name: 'ECDSA', namedCurve: 'P-256' }
  const { privateKey, publicKey } = await webcrypto.subtle.generateKey(curve, false, ['sign'])
  const { x = '', y = '' } = await webcrypto.subtle.exportKey('jwk', publicKey)
  const jwk: P256Key = { kty: 'EC', crv: 'P-256', x, y }
  const header = encode({ typ: 'dpop+jwt', alg: 'ES256', jwk })
  return { privateKey, thumbprint: thumbprintOf(jwk), header }
}

const encode = (members: object): string =>
  Buffer.from(JSON.stringify(members)).toString('base64url')
