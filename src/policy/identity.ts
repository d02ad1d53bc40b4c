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
  Object.freeze(new Identity(facts)) as ServiceIdentity

/** Thousands are cached, and few receivers look at claims: what can be made later is made then. */
class Identity {
  readonly name: string
  readonly issuer: string
  readonly audience: string
  readonly expiresAt: number
  readonly keyId: string
  declare readonly tokenId?: string
  declare readonly issuedAt?: number

  constructor(facts: IdentityFacts) {
    const { name, issuer, audience, expiresAt, keyId, permissions, tokenId, issuedAt, payload } =
      facts
    this.name = name
    this.issuer = issuer
    this.audience = audience
    this.expiresAt = expiresAt
    this.keyId = keyId
    if (tokenId !== undefined) define(this, 'tokenId', tokenId)
    if (issuedAt !== undefined) define(this, 'issuedAt', issuedAt)
    const value: Source = {
      granted: permissions,
      payload,
      permissions: undefined,
      claims: undefined,
    }
    Object.defineProperty(this, SOURCE, { value })
    Object.defineProperties(this, MADE_LATER)
  }
}

const define = (object: object, name: string, value: unknown): unknown =>
  Object.defineProperty(object, name, { enumerable: true, value })

/** What permissions and claims are made of, and what has been made. */
interface Source {
  readonly granted: readonly string[]
  readonly payload: string
  permissions: ReadonlySet<string> | undefined
  claims: Readonly<Record<string, unknown>> | undefined
}

/** Not a private field, which an object that stands for the identity would lack. */
const SOURCE = Symbol('source')

/** The same getters for all: an object with one of its own has a shape of its own. */
const MADE_LATER: PropertyDescriptorMap & ThisType<{ readonly [SOURCE]: Source }> = {
  permissions: {
    enumerable: true,
    get() {
      const source = this[SOURCE]
      source.permissions ??= permissionSet(source.granted)
      return source.permissions
    },
  },
  claims: {
    enumerable: true,
    get() {
      const source = this[SOURCE]
      source.claims ??= freezeClaims(JSON.parse(source.payload))
      return source.claims
    },
  },
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
