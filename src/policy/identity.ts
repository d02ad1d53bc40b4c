/** Who is calling, as the core has signed it and the policy has cut it. Frozen. */
export interface ServiceIdentity {
  /** The verified `sub`: the calling service. */
  readonly name: string
  /** The token's permissions, cut by the caller's ceiling. */
  readonly permissions: ReadonlySet<string>
  /** The verified `iss`. */
  readonly issuer: string
  /** The verified `aud`: this receiver. */
  readonly audience: string
  /** `jti`, where the token has one. */
  readonly tokenId?: string
  /** `iat` in seconds since the epoch, where the token has one. */
  readonly issuedAt?: number
  /** `exp` in seconds since the epoch. */
  readonly expiresAt: number
  /** The id of the key that signed the token. */
  readonly keyId: string
  /** The whole payload, deeply frozen; its objects have no prototype. */
  readonly claims: Readonly<Record<string, unknown>>
}

/** What a token says of its caller. */
export interface IdentityFacts
  extends Omit<ServiceIdentity, 'permissions' | 'claims' | 'tokenId' | 'issuedAt'> {
  readonly permissions: readonly string[]
  readonly tokenId: string | undefined
  readonly issuedAt: number | undefined
  /** The payload as JSON. */
  readonly payload: string
}

export const identityOf = (facts: IdentityFacts): ServiceIdentity =>
  Object.freeze(new Identity(facts))

/** Thousands are cached, and few receivers look at claims: what can be made later is made then. */
class Identity implements ServiceIdentity {
  declare readonly name: string
  declare readonly permissions: ReadonlySet<string>
  declare readonly issuer: string
  declare readonly audience: string
  declare readonly tokenId?: string
  declare readonly issuedAt?: number
  declare readonly expiresAt: number
  declare readonly keyId: string
  declare readonly claims: Readonly<Record<string, unknown>>
  readonly #granted: readonly string[]
  readonly #payload: string
  #permissions: ReadonlySet<string> | undefined
  #claims: Readonly<Record<string, unknown>> | undefined

  /** The same getters for all: an object with one of its own has a shape of its own. */
  static readonly #made: PropertyDescriptorMap & ThisType<Identity> = {
    permissions: {
      enumerable: true,
      get() {
        this.#permissions ??= permissionSet(this.#granted)
        return this.#permissions
      },
    },
    claims: {
      enumerable: true,
      get() {
        this.#claims ??= freezeClaims(JSON.parse(this.#payload))
        return this.#claims
      },
    },
  }

  constructor({ permissions, tokenId, issuedAt, payload, ...facts }: IdentityFacts) {
    Object.assign(this, facts)
    if (tokenId !== undefined) this.tokenId = tokenId
    if (issuedAt !== undefined) this.issuedAt = issuedAt
    this.#granted = permissions
    this.#payload = payload
    Object.defineProperties(this, Identity.#made)
  }
}

/** A set that cannot be changed through its own methods. */
class FixedSet extends Set<string> {
  constructor(values: Iterable<string>) {
    super()
    for (const value of values) super.add(value)
  }
  override add(): never {
    throw new TypeError('the permissions of a service cannot be changed')
  }
  override delete(): never {
    return this.add()
  }
  override clear(): never {
    return this.add()
  }
}

export const permissionSet = (names: Iterable<string>): ReadonlySet<string> =>
  Object.freeze(new FixedSet(names))

/** Freezes a parsed JSON object through and through, and takes the prototypes of its objects away. */
export function freezeClaims(payload: object): Readonly<Record<string, unknown>> {
  // A list instead of recursion: how deep it nests is the token's choice.
  const pending: object[] = [payload]
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (!Array.isArray(value)) Object.setPrototypeOf(value, null)
    for (const member of Object.values(value)) {
      if (typeof member === 'object' && member !== null) pending.push(member)
    }
    Object.freeze(value)
  }
  return payload as Readonly<Record<string, unknown>>
}
