import { textOfParts } from '../../base/digest.js'
import type { Binding, Confirmation } from '../confirmation/sender-constraint.js'

/** The calling service, as its verified token and the policy describe it. Frozen. */
export interface ServiceIdentity {
  /** The verified `sub`: the calling service. */
  readonly name: string
  /** The token's permissions, without those beyond the caller's ceiling. Each read gives another set. */
  readonly permissions: ReadonlySet<string>
  /** The verified `iss`. */
  readonly issuer: string
  /** The verified `aud`: this receiver. */
  readonly audience: string
  /** `jti`, if the token has one. */
  readonly tokenId?: string
  /** `iat` in seconds since the epoch, if the token has one. */
  readonly issuedAt?: number
  /** `exp` in seconds since the epoch. */
  readonly expiresAt: number
  /** The id of the key that signed the token. */
  readonly keyId: string
  /** What the token is bound to, once the request has shown it; absent for an unbound token. */
  readonly confirmation?: Confirmation
  /** The whole payload, deeply frozen; its objects have no prototype. */
  readonly claims: Readonly<Record<string, unknown>>
}

/** Input of `createIdentity`. */
interface IdentityFacts
  extends Omit<
    ServiceIdentity,
    'claims' | 'permissions' | 'tokenId' | 'issuedAt' | 'confirmation'
  > {
  readonly permissions: readonly string[]
  readonly tokenId: string | undefined
  readonly issuedAt: number | undefined
  readonly binding: Binding
  /** The token's payload as JSON text. */
  readonly payload: string
}

export const createIdentity = (facts: IdentityFacts): ServiceIdentity =>
  Object.freeze(new Identity(facts)) as ServiceIdentity

/** The permissions that guards decide by. The app has no reference to the list. */
export const permissionsOf = (identity: ServiceIdentity): readonly string[] =>
  Identity.permissionsOf(identity as unknown as Identity)

/** The same caller, with these permissions. */
export const withPermissions = (
  identity: ServiceIdentity,
  permissions: readonly string[],
): ServiceIdentity => createIdentity(Identity.factsOf(identity as unknown as Identity, permissions))

type Claims = Readonly<Record<string, unknown>>

/**
 * `claims` is parsed when it is first read: thousands of identities are cached, and few handlers look
 * at claims.
 */
class Identity {
  readonly name: string
  readonly issuer: string
  readonly audience: string
  readonly expiresAt: number
  readonly keyId: string
  declare readonly tokenId?: string
  declare readonly issuedAt?: number
  declare readonly confirmation?: Confirmation
  readonly #permissions: readonly string[]
  readonly #payload: string
  #claims: Claims | undefined = undefined

  constructor(facts: IdentityFacts) {
    this.name = facts.name
    this.#permissions = facts.permissions
    this.issuer = facts.issuer
    this.audience = facts.audience
    this.expiresAt = facts.expiresAt
    this.keyId = facts.keyId
    this.#payload = facts.payload
    if (facts.tokenId !== undefined) this.tokenId = facts.tokenId
    if (facts.issuedAt !== undefined) this.issuedAt = facts.issuedAt
    if (facts.binding !== 'none') this.confirmation = facts.binding
    Object.defineProperty(this, 'permissions', PERMISSIONS)
    Object.defineProperty(this, 'claims', CLAIMS)
  }

  static permissionsOf(identity: Identity): readonly string[] {
    return identity.#permissions
  }

  static factsOf(identity: Identity, permissions: readonly string[]): IdentityFacts {
    const { name, issuer, audience, tokenId, issuedAt, expiresAt, keyId } = identity
    const token = { issuer, audience, tokenId, issuedAt, expiresAt, keyId }
    const binding = identity.confirmation ?? 'none'
    return { name, permissions, ...token, binding, payload: identity.#payload }
  }

  static claimsOf(identity: Identity): Claims {
    identity.#claims ??= freezeClaims(JSON.parse(identity.#payload))
    return identity.#claims
  }
}

type Getter = PropertyDescriptor & ThisType<Identity>

/** One getter for all identities: with one getter each, V8 would make a hidden class for every identity. */
const PERMISSIONS: Getter = {
  enumerable: true,
  get() {
    return new PermissionSet(Identity.permissionsOf(this))
  },
}

const CLAIMS: Getter = {
  enumerable: true,
  get() {
    return Identity.claimsOf(this)
  },
}

/** Freezes a parsed JSON object at every depth, and gives its objects a null prototype. */
export function freezeClaims(payload: object): Claims {
  // No recursion: a token may nest deeper than the stack.
  const pending: object[] = [payload]
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (!Array.isArray(value)) Object.setPrototypeOf(value, null)
    for (const member of Object.values(value)) {
      if (typeof member === 'object' && member !== null) pending.push(member)
    }
    Object.freeze(value)
  }
  return payload as Claims
}

const MAX_SHARED = 256
const sharedLists = new Map<string, readonly string[]>()

/**
 * A frozen list of these names. Equal lists share one: thousands of a service's tokens are cached, and most have the
 * same permissions.
 */
export function permissionList(names: readonly string[]): readonly string[] {
  const key = textOfParts(names)
  const existing = sharedLists.get(key)
  if (existing !== undefined) return existing
  if (sharedLists.size >= MAX_SHARED) sharedLists.clear()
  const list = Object.freeze([...names])
  sharedLists.set(key, list)
  return list
}

/**
 * The permissions of a caller for an app to read. Nothing is decided by it, and each reader gets one of its own,
 * because `Set.prototype.add.call` changes any `Set`.
 */
export class PermissionSet extends Set<string> {
  constructor(names: readonly string[]) {
    super()
    for (const name of names) super.add(name)
    Object.freeze(this)
  }

  override add(): never {
    throw new TypeError('the permissions of a caller cannot be changed')
  }

  override delete(): never {
    return this.add()
  }

  override clear(): never {
    return this.add()
  }

  /** A list: the JSON of a `Set` is an empty object. */
  toJSON(): readonly string[] {
    return [...this]
  }
}
