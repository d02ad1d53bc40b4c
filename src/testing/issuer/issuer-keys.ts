import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'

export interface SigningKey {
  readonly kid: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

/** The keys of an issuer, published and withdrawn. */
export interface KeyRing {
  /** The key that signs new tokens. */
  current(): SigningKey
  /** Published with the other keys, as the core does, and never rotated. */
  readonly staticKey: SigningKey
  /** Returns any key that this ring has ever held. */
  find(kid: string): SigningKey | undefined
  /** Makes a key that signs from now on; the other keys stay published. */
  rotate(): SigningKey
  /** Withdraws a key from the key set; returns whether it was there. */
  remove(kid: string): boolean
  /** The published key set (RFC 7517). */
  document(): { readonly keys: readonly object[] }
}

export function createSigningKey(kid: string): SigningKey {
  return { kid, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) }
}

export const publicJwk = ({ kid, publicKey }: SigningKey): object => ({
  ...publicKey.export({ format: 'jwk' }),
  kid,
  alg: 'RS256',
  use: 'sig',
})

/** Forms key ids as the core does: `d-<created ms>` and `s-<uuid>`. */
export function createKeyRing(makeKey: (kid: string) => SigningKey): KeyRing {
  const staticKey = makeKey(`s-${randomUUID()}`)
  const known = new Map([[staticKey.kid, staticKey]])
  const published = new Set([staticKey.kid])
  let created = Date.now()
  let current = add()

  function add(): SigningKey {
    created = Math.max(created + 1, Date.now())
    const key = makeKey(`d-${created}`)
    known.set(key.kid, key)
    published.add(key.kid)
    return key
  }

  return {
    current: () => current,
    staticKey,
    find: (kid) => known.get(kid),
    rotate() {
      current = add()
      return current
    },
    remove: (kid) => published.delete(kid),
    document: () => ({
      keys: [...known.values()].filter(({ kid }) => published.has(kid)).map(publicJwk),
    }),
  }
}
